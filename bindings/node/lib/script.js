// TorchScript modules: traced from JavaScript functions, loaded, saved, called, trained in one call a step.
'use strict'

const { C, Owner, Tensor, callbacks, fail, handleOf, heldBy, hold, koffi, made, own, refuse, text } = require('./core')
const { deviceBytes, is, toDevice, toTensors } = require('./convert')
const { taken, throughStack } = require('./values')
const { checkCallbacks } = require('./functions')
const { Optimizer } = require('./learning')

const isText = (name, what) => (is.str(what) ? what : refuse(`${name}: a string without zero bytes is needed`))
const areTensors = (x) => Array.isArray(x) && x.every(is.Tensor)

const scripted = (module) => heldBy(module, C.tn_module_free)

class Module extends Owner {
  // Call a method on any values.
  call(method, ...given) {
    isText('call', method)
    return throughStack((stack) => C.tn_module_call(scripted(this), method, stack), given)
  }
  forward(...given) { return this.call('forward', ...given) }

  save(path) {
    if (C.tn_module_save(scripted(this), isText('save', path)) !== 0) fail()
  }

  // The parameters by name; changing these tensors in place changes the module.
  parameters() { return taken(C.tn_module_parameters(scripted(this))) }
  buffers() { return taken(C.tn_module_buffers(scripted(this))) }
  methods() { return taken(C.tn_module_methods(scripted(this))) }
  attribute(name) { return taken(C.tn_module_attribute(scripted(this), isText('attribute', name))) }

  train(training = true) {
    if (C.tn_module_train(scripted(this), Boolean(training)) !== 0) fail()
    return this
  }
  eval() { return this.train(false) }

  to(device) {
    if (C.tn_module_to(scripted(this), toDevice(device)) !== 0) fail()
    return this
  }

  code() { return text(C.tn_module_code, scripted(this)) }
  graph(method = 'forward') { return text(C.tn_module_graph, scripted(this), method) }
}

const moduleOf = (handle) => hold(new Module(), handle, C.tn_module_free)

// Load a module from a TorchScript file, onto a device if one is named.
function load(path, device) {
  return moduleOf(C.tn_module_load(isText('load', path), device === undefined ? null : deviceBytes(device)))
}

// A module whose methods are the functions of a TorchScript source.
const compile = (source) => moduleOf(C.tn_module_compile(isText('compile', source)))

// Run fn once on example tensors, and keep what it computed as a module. It gets tensors and returns tensors.
function trace(fn, examples, results = 1) {
  if (typeof fn !== 'function') refuse('trace: the first argument is a function')
  if (!areTensors(examples)) refuse('trace: the examples are an array of tensors')
  let thrown
  const body = (inputs, count, outputs) => {
    const handles = count ? Array.from(koffi.decode(inputs, 'uint64_t', Number(count))) : []
    const answer = fn(...handles.map((each) => own(made(null, C.tn_tensor_share, each))))
    const given = Array.isArray(answer) ? answer : [answer]
    if (given.length !== results || !areTensors(given)) {
      refuse(`trace: the function returns ${results} tensors, told by the third argument`)
    }
    koffi.encode(outputs, 'uint64_t', given.map((each) => made(each, C.tn_tensor_share, handleOf(each))), results)
  }
  const callback = callbacks.register('tn_trace_fn', (inputs, count, outputs) => {
    try {
      body(inputs, count, outputs)
      return 0
    } catch (error) {
      thrown = error
      return C.tn_fail(String(error?.message ?? error))
    }
  })
  let handle
  try {
    handle = C.tn_module_trace(callback, ...toTensors(examples, 0), results, 0)
  } finally {
    callbacks.unregister(callback)
  }
  if (handle === 0 && thrown !== undefined) {
    C.tn_error_clear()
    throw thrown
  }
  return moduleOf(handle)
}

// One whole step of training: the loss of that name, such as mse_loss, comes back.
function trainStep(module, optimizer, loss, inputs, target) {
  if (!areTensors(inputs)) refuse('train_step: the inputs are an array of tensors')
  if (!(target instanceof Tensor)) refuse('train_step: the target is a tensor')
  if (!(module instanceof Module)) refuse('train_step: the module is one of TorchScript')
  if (!(optimizer instanceof Optimizer)) refuse('train_step takes an optimizer second')
  isText('train_step', loss)
  const array = toTensors(inputs, 0)
  const made = C.tn_train_step(scripted(module), heldBy(optimizer, C.tn_optimizer_free), loss, ...array, handleOf(target))
  checkCallbacks(made === 0 ? -1 : 0)
  return own(made)
}

module.exports = { Module, compile, load, trace, trainStep }
