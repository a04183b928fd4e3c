// Learn XOR: a network of eight hidden units, its gradients by libtorch, its steps by Adam.
'use strict'
const assert = require('assert')
const tn = require('tenfold')

tn.manual_seed(1)
const x = tn.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
const y = tn.tensor([[0], [1], [1], [0]])
const network = new tn.nn.Sequential(new tn.nn.Linear(2, 8), new tn.nn.Tanh(), new tn.nn.Linear(8, 1))
const criterion = new tn.nn.BCEWithLogitsLoss()
const adam = new tn.optim.Adam(network.parameters(), { lr: 0.05 })

let loss
for (let step = 1; step <= 300; step += 1) {
  loss = tn.scope(() => {
    const found = criterion.call(network.call(x), y)
    adam.zero_grad()
    found.backward()
    adam.step()
    return found.item()
  })
  if (step % 100 === 0) console.log(`step ${step}: loss ${loss.toFixed(4)}`)
}
assert(loss < 0.1)

const answers = network.call(x).gt(0).tolist()
x.tolist().forEach(([a, b], place) => console.log(`${a} xor ${b} = ${Number(answers[place][0])}`))
