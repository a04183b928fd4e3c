// Tenfold for Node: libtorch's tensors, operators, gradients, optimizers and script modules.
//
//   const tn = require('tenfold')
//   const x = tn.randn(2, 3)
//   console.log(String(x.add(1).relu().sum(1)))
//
// Names, their arguments and the numbering of dimensions from 0 are PyTorch's. The last argument may be an object of
// arguments by name: x.sum({ dim: [1], keepdim: true }). Errors are TenfoldErrors with a code and a message.
'use strict'

const core = require('./lib/core')
const convert = require('./lib/convert')
const operators = require('./lib/operators')
const tensor = require('./lib/tensor')
const values = require('./lib/values')
const script = require('./lib/script')
const learning = require('./lib/learning')
const functions = require('./lib/functions')
const networks = require('./lib/nn')

const { C, Tensor, fail, own, refuse } = core

// Write tensors by name to a safetensors file, and read one.
function save(path, tensors) {
  const [names, list] = [Object.keys(tensors ?? {}), Object.values(tensors ?? {})]
  if (!convert.is.str(path) || !tensors || !names.every(convert.is.str) || !list.every(convert.is.Tensor)) {
    refuse('save: a path, and tensors by name')
  }
  if (C.tn_save_safetensors(path, names, ...convert.toTensors(list, 0)) !== 0) fail()
}

function load(path) {
  if (!convert.is.str(path)) refuse('load: the path is a string without zero bytes')
  return values.taken(C.tn_load_safetensors(path))
}

// A loss by its name, such as cross_entropy, averaged.
function loss(name, input, target) {
  if (typeof name !== 'string' || !(input instanceof Tensor) || !(target instanceof Tensor)) {
    refuse('loss: a name, the input and the target')
  }
  return own(C.tn_loss(name, core.handleOf(input), core.handleOf(target)) || fail())
}

const tenfold = {
  Tensor, TenfoldError: core.TenfoldError, tensor, ops: operators, optim: learning.optim,
  nn: networks.nn, lr_scheduler: networks.schedulers, DataLoader: networks.dataLoader,
  jit: { trace: script.trace, load: script.load, compile: script.compile, Module: script.Module },
  grad: learning.grad, no_grad: learning.noGrad, enable_grad: learning.enableGrad,
  inference_mode: learning.inferenceMode, detect_anomaly: learning.detectAnomaly,
  is_grad_enabled: () => core.truth(C.tn_grad_enabled()),
  autograd_function: functions.autogradFunction, stream: (device) => new functions.Stream(device),
  train_step: script.trainStep, loss, call: values.call, tuple: values.tuple, save, load,
  scope: core.scope, keep: core.keep, collect: core.collect, set_pressure: core.setPressure,
  double: convert.double, complex_number: convert.complex,
  generator: (seed, device) => new convert.Generator(seed, device),
  version: () => C.tn_version(), torch_version: () => C.tn_torch_version(),
  cuda_available: () => core.truth(C.tn_cuda_available()),
  live_tensors: () => Number(C.tn_live_tensors()), live_bytes: () => Number(C.tn_live_bytes()),
  peak_bytes: () => Number(C.tn_peak_bytes()), reset_peak_bytes: () => C.tn_reset_peak_bytes(),
  manual_seed(seed) {
    if (!convert.is.int(seed)) refuse('manual_seed: a seed is a whole number')
    if (C.tn_manual_seed(BigInt(seed)) !== 0) fail()
  },
  set_threads(count) {
    if (!convert.is.int(count)) refuse('set_threads: a number of threads is a whole number')
    if (C.tn_set_threads(count) !== 0) fail()
  },
}

// Every operator is a function here too, unless something above has its name.
module.exports = Object.setPrototypeOf(tenfold, operators)
