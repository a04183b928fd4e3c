// Learn to read digits of 8 x 8 pixels.
//
// usage: node 04_digits.js FOLDER, with digits.safetensors in it: `images` (float32, n x 64), `labels` (int64, n).
'use strict'
const assert = require('assert')
const tn = require('tenfold')

tn.manual_seed(1)
const { images, labels } = tn.load(`${process.argv[2]}/digits.safetensors`)
const [count, batch] = [1437, 64]
const layer = (inputs, outputs) => [
  tn.rand(outputs, inputs).mul(2).sub(1).div(Math.sqrt(inputs)).requires_grad_(), tn.zeros(outputs).requires_grad_(),
]
const [[w1, b1], [w2, b2]] = [layer(64, 64), layer(64, 10)]
const adam = new tn.optim.AdamW([w1, b1, w2, b2], { lr: 3e-3 })
const forward = (x) => tn.linear(tn.linear(x, w1, b1).relu(), w2, b2)

for (let epoch = 1; epoch <= 12; epoch += 1) {
  const order = tn.randperm(count)
  let last
  for (let first = 0; first + batch <= count; first += batch) {
    last = tn.scope(() => {
      const chosen = order.narrow(0, first, batch)
      const loss = tn.loss('cross_entropy', forward(images.index_select(0, chosen)), labels.index_select(0, chosen))
      adam.zero_grad()
      loss.backward()
      adam.step()
      return loss.item()
    })
  }
  console.log(`epoch ${String(epoch).padStart(2)}  loss ${last.toFixed(4)}`)
}

const unseen = images.shape[0] - count
const guesses = tn.no_grad(() => forward(images.narrow(0, count, unseen)).argmax(1))
const right = guesses.eq(labels.narrow(0, count, unseen)).double().mean().item()
console.log(`${(100 * right).toFixed(1)}% of the unseen digits are read`)
assert(right > 0.9)
