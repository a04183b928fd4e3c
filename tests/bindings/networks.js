// Layers with given weights and inputs: node networks.js PACKAGE GIVEN LAYERS LOSSES RESULTS
'use strict'
const [, , pkg, path, layers, losses, results] = process.argv
const tn = require(pkg)

const given = tn.load(path)
const state = (name) => Object.fromEntries(
  Object.keys(given).filter((each) => each.startsWith(`${name}.state.`)).map((each) => [each.slice(name.length + 7), given[each]]),
)
const found = {}
for (const [name, options] of Object.entries(JSON.parse(layers))) {
  const layer = new tn.nn[name](...options).load_state_dict(state(name))
  found[name] = layer.call(given[`${name}.input`]).detach().contiguous()
}
for (const name of JSON.parse(losses)) found[name] = new tn.nn[name]().call(given[`${name}.input`], given[`${name}.target`]).reshape([1])
tn.save(results, found)
