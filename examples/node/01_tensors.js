// Tensors, operators, arguments by name, and errors with a code.
'use strict'
const tn = require('tenfold')

const x = tn.tensor([[1, 2, 3], [4, 5, 6]])
console.log(String(x.mul(2).add(1)))
console.log('rows sum to', x.sum(1).tolist())
console.log('and stay columns with', x.sum({ dim: [1], keepdim: true }).shape)
console.log('the element at 1, 2 is', x.at(1).at(2).item())
console.log('those above 2:', x.at(x.gt(2)).tolist())

try {
  x.matmul(x)
} catch (problem) {
  console.log(problem.code, problem.message)
}

// A scope frees what it made, but for what it returns.
const norm = tn.scope(() => x.mul(x).sum().sqrt())
console.log('norm', norm.item(), 'with', tn.live_bytes(), 'bytes alive')
