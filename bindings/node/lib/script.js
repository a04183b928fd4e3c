// TorchScript modules: traced from JavaScript functions, loaded, saved, called, trained in one call a step.
'use strict'

const { C, Owner, Tensor, callbacks, fail, koffi, made, own, refuse, text } = require('./core')
const { deviceBytes, is, toDevice, toTensors } = require('./convert')
const { taken, throughStack } = require('./values')
const { checkCallbacks } = require('./functions')

const isText = (name, what) => (typeof what === 'string' ? what : refuse(`${name}: a string is needed`))
const areTensors = (x) => Array.isArray(x) && x.every(is.Tensor)

class Module extends Owner {
  constructor(handle) { super(handle, C.tn_module_free) }

  // Call a method on any values.
  call(method, ...given) {
    isText('call', method)
    return throughStack((stack) => C.tn_module_call(this.handle, method, stack), given)
  }
  forward(...given) { return this.call('forward', ...given) }

  save(path) {
    if (C.tn_module_save(this.handle, isText('save', path)) !== 0) fail()
  }

  // The parameters by name; changing these tensors in place changes the module.
  parameters() { return taken(C.tn_module_parameters(this.handle)) }
  buffers() { return taken(C.tn_module_buffers(this.handle)) }
  methods() { return taken(C.tn_module_methods(this.handle)) }
  attribute(name) { return taken(C.tn_module_attribute(this.handle, isText('attribute', name))) }

  train(training = true) {
    if (C.tn_module_train(this.handle, Boolean(training)) !== 0) fail()
    return this
  }
  eval() { return this.train(false) }

  to(device) {
    if (C.tn_module_to(this.handle, toDevice(device)) !== 0) fail()
    return this
  }

  code() { return text(C.tn_module_code, this.handle) }
  graph(method = 'forward') { return text(C.tn_module_graph, this.handle, method) }
}

// Load a module from a TorchScript file, onto a device if one is named.
function load(path, device) {
  return new Module(C.tn_module_load(isText('load', path), device === undefined ? null : deviceBytes(device)))
}

// A module whose methods are the functions of a TorchScript source.
const compile = (source) => new Module(C.tn_module_compile(isText('compile', source)))

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
    koffi.encode(outputs, 'uint64_t', given.map((each) => made(each, C.tn_tensor_share, each.handle)), results)
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
  return new Module(handle)
}

// One whole step of training: the loss of that name, such as mse_loss, comes back.
function trainStep(module, optimizer, loss, inputs, target) {
  if (!areTensors(inputs)) refuse('train_step: the inputs are an array of tensors')
  if (!(target instanceof Tensor)) refuse('train_step: the target is a tensor')
  isText('train_step', loss)
  const array = toTensors(inputs, 0)
  const made = C.tn_train_step(module.handle, optimizer.handle, loss, ...array, target.handle)
  checkCallbacks(made === 0 ? -1 : 0)
  return own(made)
}

module.exports = { Module, compile, load, trace, trainStep }
