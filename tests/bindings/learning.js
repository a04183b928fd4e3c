// A hundred steps from given weights: `node learning.js PACKAGE xor|digits FILE` prints the losses.
'use strict'

const [, , home, task, file] = process.argv
const tn = require(home)
const { x, y, w1, b1, w2, b2 } = tn.load(file)
const parameters = [w1, b1, w2, b2]
for (const each of parameters) each.requires_grad = true
const adam = new tn.optim.Adam(parameters, { lr: task === 'xor' ? 0.05 : 0.01 })
const lossOf = task === 'xor' ? 'binary_cross_entropy_with_logits' : 'cross_entropy'

for (let step = 0; step < 100; step += 1) {
  const loss = tn.loss(lossOf, tn.linear(tn.linear(x, w1, b1).tanh(), w2, b2), y)
  adam.zero_grad()
  loss.backward()
  adam.step()
  console.log(loss.item())
}
