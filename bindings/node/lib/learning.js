// Gradients, and what improves parameters by them.
'use strict'

const { C, Owner, Tensor, fail, handleOf, heldBy, hold, ownMaybe, refuse } = require('./core')
const { is, liveHandle, toTensors } = require('./convert')
const { checkCallbacks } = require('./functions')

// ---- gradients ------------------------------------------------------------------------------------------

Object.assign(Tensor.prototype, {
  requires_grad_(needed = true) {
    if (C.tn_set_requires_grad(handleOf(this), Boolean(needed)) !== 0) fail()
    return this
  },

  retain_grad() {
    if (C.tn_retain_grad(handleOf(this)) !== 0) fail()
    return this
  },

  // Add the gradients to those of the leaves.
  backward({ gradient = null, retain_graph: retain = false, create_graph: create = false } = {}) {
    const from = gradient === null ? 0 : liveHandle(gradient)
    checkCallbacks(C.tn_backward_with(handleOf(this), from, retain || create, create))
  },
})

const arrayOf = (x) => (x instanceof Tensor ? [x] : x)

// The gradients of outputs by inputs, one for each input; null for one that is not used, where that is allowed.
function grad(outputs, inputs, named = {}) {
  const { gradients, retain_graph: retain = false, create_graph: create = false, allow_unused: unused = false } = named
  const [of, by] = [arrayOf(outputs), arrayOf(inputs)]
  if (!is.Tensor(of?.[0]) || !is.Tensor(by?.[0])) refuse('grad: outputs and inputs are tensors')
  const from = gradients === undefined ? [null, 0] : toTensors(gradients, 0)
  const outs = new BigUint64Array(by.length)
  const given = [...toTensors(of, 0), ...toTensors(by, 0), ...from, retain || create, create, unused]
  checkCallbacks(C.tn_gradients(...given, outs, by.length))
  return Array.from(outs, (handle) => ownMaybe(Number(handle)))
}

const within = (begin) => (fn) => {
  const scope = begin()
  if (scope < 0) fail()
  try {
    const result = fn()
    if (result instanceof Promise) refuse('the function must not be async')
    return result
  } finally {
    C.tn_scope_end(scope)
  }
}

// ---- optimizers -----------------------------------------------------------------------------------------

class State extends Owner {}

const held = (optimizer) => heldBy(optimizer, C.tn_optimizer_free)

class Optimizer extends Owner {
  set(option, value) {
    if (!['number', 'boolean'].includes(typeof value)) refuse(`an optimizer's ${option} is a number or a boolean`)
    if (C.tn_optimizer_set(held(this), option, Number(value)) !== 0) fail()
  }

  get(option) {
    const value = new Float64Array(1)
    if (C.tn_optimizer_get(held(this), String(option), value) !== 0) fail()
    return value[0]
  }

  step() {
    if (C.tn_optimizer_step(held(this)) !== 0) fail()
  }

  zero_grad() {
    if (C.tn_optimizer_zero_grad(held(this)) !== 0) fail()
  }

  // All that it remembers, to give to set_state of another.
  state() { return hold(new State(), C.tn_optimizer_state(held(this)), C.tn_value_free) }
  set_state(state) {
    if (!(state instanceof State)) refuse('set_state takes what state() of an optimizer gave')
    if (C.tn_optimizer_set_state(held(this), heldBy(state, C.tn_value_free)) !== 0) fail()
  }
}

const kind = (make, lr) => class extends Optimizer {
  constructor(parameters, options) {
    if (!Array.isArray(parameters) || !parameters.length || !parameters.every(is.Tensor)) {
      refuse("an optimizer's parameters are an array of tensors")
    }
    if (typeof (options?.lr ?? lr) !== 'number') refuse("an optimizer's lr is a number")
    super()
    hold(this, make(...toTensors(parameters, 0), options?.lr ?? lr), C.tn_optimizer_free)
    for (const [name, value] of Object.entries(options ?? {})) this.set(name, value)
  }
}

// Each takes an array of parameters and options, which tenfold.h lists.
const optim = {
  SGD: kind(C.tn_optimizer_sgd, 1e-3),
  Adam: kind(C.tn_optimizer_adam, 1e-3),
  AdamW: kind(C.tn_optimizer_adamw, 1e-3),
  RMSprop: kind(C.tn_optimizer_rmsprop, 1e-2),
  Adagrad: kind(C.tn_optimizer_adagrad, 1e-2),
}

module.exports = {
  Optimizer, grad, optim, noGrad: within(C.tn_no_grad_begin), enableGrad: within(C.tn_enable_grad_begin),
  inferenceMode: within(C.tn_inference_begin), detectAnomaly: within(C.tn_detect_anomaly_begin),
}
