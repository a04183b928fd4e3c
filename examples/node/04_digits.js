// Learn to read digits of 8 x 8 pixels.
//
// usage: node 04_digits.js FOLDER, with digits.safetensors in it: `images` (float32, n x 64), `labels` (int64, n).
'use strict'
const assert = require('assert')
const tn = require('tenfold')

tn.manual_seed(1)
const { images, labels } = tn.load(`${process.argv[2]}/digits.safetensors`)
const [count, batch] = [1437, 64]
const { Linear, ReLU, Dropout, Sequential, CrossEntropyLoss } = tn.nn
const network = new Sequential(new Linear(64, 64), new ReLU(), new Dropout(0.1), new Linear(64, 10))
const criterion = new CrossEntropyLoss()
const adam = new tn.optim.AdamW(network.parameters(), { lr: 3e-3 })
const schedule = tn.lr_scheduler.CosineAnnealingLR(adam, 12)
const seen = [images.narrow(0, 0, count), labels.narrow(0, 0, count)]

for (let epoch = 1; epoch <= 12; epoch += 1) {
  let last
  for (const [x, y] of tn.DataLoader(seen, { batch_size: batch, shuffle: true })) {
    last = tn.scope(() => {
      const loss = criterion.call(network.call(x), y)
      adam.zero_grad()
      loss.backward()
      adam.step()
      return loss.item()
    })
  }
  schedule.step()
  console.log(`epoch ${String(epoch).padStart(2)}  loss ${last.toFixed(4)}`)
}

const unseen = images.shape[0] - count
const guesses = tn.no_grad(() => network.eval().call(images.narrow(0, count, unseen)).argmax(1))
const right = guesses.eq(labels.narrow(0, count, unseen)).double().mean().item()
console.log(`${(100 * right).toFixed(1)}% of the unseen digits are read`)
assert(right > 0.9)
