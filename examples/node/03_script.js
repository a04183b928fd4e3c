// Trace a JavaScript function into a TorchScript module, save it, load it, call it. Python and C++ can load the file.
'use strict'
const assert = require('assert')
const path = require('path')
const tn = require('tenfold')

const file = path.join(process.argv[2] ?? '.', 'gate.pt')
const x = tn.tensor([[-1, 0.5], [2, -3]])
const traced = tn.jit.trace((a) => a.sigmoid().mul(a), [x])
traced.save(file)

const loaded = tn.jit.load(file)
console.log(loaded.code())
assert(loaded.forward(x).equal(x.sigmoid().mul(x)))
console.log(String(loaded.forward(x)))
