// Makes the calls of a sweep: `node sweep.js PACKAGE FOLDER`, with FOLDER/cases and FOLDER/inputs.safetensors.
'use strict'

const fs = require('fs')
const [, , home, folder] = process.argv
const tn = require(home)
const inputs = tn.load(`${folder}/inputs.safetensors`)
const results = {}
let failed = 0

// A fresh copy of an input, a number that is a double, or what else JSON holds.
function read(value) {
  if (Array.isArray(value)) return value.map(read)
  if (value === null || typeof value !== 'object') return value
  if (value.tensor !== undefined) return inputs[value.tensor].clone()
  if (value.double !== undefined) return tn.double(Number(value.double))
  if (value.number !== undefined) return Number(value.number)
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, read(each)]))
}

function make({ number, op, given }) {
  tn.manual_seed(0)
  try {
    const answer = tn.ops[op](...given.map(read))
    const flat = (Array.isArray(answer) ? answer.flat() : [answer]).filter((each) => each !== null)
    flat.forEach((each, place) => {
      const kept = typeof each === 'boolean' ? tn.tensor(each) : each
      results[`${number}.${place}`] = kept.detach().contiguous().clone()
    })
  } catch (error) {
    failed += 1
    console.log(`${number} ${op}: ${error.message}`)
  }
}

fs.readFileSync(`${folder}/cases`, 'utf8').trim().split('\n').forEach((line) => make(JSON.parse(line)))
tn.save(`${folder}/results.safetensors`, results)
for (const each of [...Object.values(results), ...Object.values(inputs)]) each.free()
tn.collect()
console.log(`${failed} failed, ${tn.live_tensors()} tensors left`)
