// Learn XOR: a network of eight hidden units, its gradients by libtorch, its steps by Adam.
'use strict'
const assert = require('assert')
const tn = require('tenfold')

tn.manual_seed(1)
const x = tn.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
const y = tn.tensor([[0], [1], [1], [0]])
const parameters = [tn.randn(8, 2), tn.randn(8), tn.randn(1, 8), tn.randn(1)].map((each) => each.requires_grad_())
const [w1, b1, w2, b2] = parameters
const adam = new tn.optim.Adam(parameters, { lr: 0.05 })
const forward = () => tn.linear(tn.linear(x, w1, b1).tanh(), w2, b2)

let loss
for (let step = 1; step <= 300; step += 1) {
  loss = tn.scope(() => {
    const found = tn.loss('binary_cross_entropy_with_logits', forward(), y)
    adam.zero_grad()
    found.backward()
    adam.step()
    return found.item()
  })
  if (step % 100 === 0) console.log(`step ${step}: loss ${loss.toFixed(4)}`)
}
assert(loss < 0.1)

const answers = forward().gt(0).tolist()
x.tolist().forEach(([a, b], place) => console.log(`${a} xor ${b} = ${Number(answers[place][0])}`))
