// Neural networks: modules with parameters and state, made of the layers that generated/layers.json describes, and what trains
// them: learning rates that change, and samples in batches.
'use strict'

const { Tensor, refuse } = require('./core')
const { is } = require('./convert')
const operators = require('./operators')
const layers = require('../generated/layers.json')

const REDUCTIONS = { none: 0, mean: 1, sum: 2 }

// Something that is called with tensors, and whose own tensors and modules are found by their names.
class Module {
  constructor() {
    this.training = true
    Object.defineProperty(this, 'bufferNames', { value: new Set() })
  }

  // Say that a tensor is part of the state, and does not learn.
  register_buffer(name, tensor) {
    this[name] = tensor
    this.bufferNames.add(name)
  }

  call(...inputs) { return this.forward(...inputs) }

  * own(wanted, prefix = '') {
    for (const [name, part] of Object.entries(this)) {
      if (part instanceof Module) yield* part.own(wanted, `${prefix}${name}.`)
      else if (part instanceof Tensor && wanted(this, name, part)) yield [prefix + name, part]
    }
  }

  parameters() { return Object.values(this.named_parameters()) }
  named_parameters() {
    const seen = new Set()
    const fresh = (module, name, part) => !module.bufferNames.has(name) && part.requires_grad && !seen.has(part) && seen.add(part)
    return Object.fromEntries(this.own(fresh))
  }

  // All parameters and buffers by name, which share their memory with the module's.
  state_dict() { return Object.fromEntries(this.own((module, name, part) => module.bufferNames.has(name) || part.requires_grad)) }

  load_state_dict(state) {
    if (state === null || typeof state !== 'object') refuse('load_state_dict: a state is an object of tensors by name')
    const own = this.state_dict()
    const wrong = [...Object.keys(own).filter((name) => !(name in state)), ...Object.keys(state).filter((name) => !(name in own))]
    if (wrong.length) refuse(`the state and the module differ in ${wrong.join(', ')}`)
    const learning = require('./learning')
    learning.noGrad(() => { for (const [name, tensor] of Object.entries(own)) tensor.copy_(state[name]) })
    return this
  }

  children() { return Object.values(this).filter((part) => part instanceof Module) }

  train(mode = true) {
    this.training = mode
    for (const child of this.children()) child.train(mode)
    return this
  }

  eval() { return this.train(false) }

  zero_grad() { for (const each of this.parameters()) each.grad = null }
}

// ---- layers that are described --------------------------------------------------------------------------

// What a size or an argument stands for: an option, a quotient, a number so many times.
function sizesOf(text, options) {
  const quotient = text.match(/^(\w+)\/(\w+)$/)
  if (quotient) return [options[quotient[1]] / options[quotient[2]]]
  const several = text.match(/^(\w+)\*(\d*)$/)
  const value = options[several ? several[1] : text]
  if (Array.isArray(value)) return value
  return several && several[2] ? Array(Number(several[2])).fill(value) : [value]
}

function started(how, sizes, bound) {
  if (how === 'uniform') return operators.rand(...sizes).mul(2 * bound).sub(bound)
  return operators[{ normal: 'randn', ones: 'ones', zeros: 'zeros' }[how]](...sizes)
}

// Options by position or, last, in an object by name.
function optionsOf(name, row, given) {
  const last = given[given.length - 1]
  const named = last !== null && typeof last === 'object' && !Array.isArray(last) ? given.pop() : {}
  const options = {}
  row.options.forEach(([option, optional, otherwise], place) => {
    options[option] = given[place] ?? named[option] ?? (optional ? otherwise : refuse(`${name} needs ${option}`))
  })
  const unknown = Object.keys(named).find((option) => !(option in options))
  if (unknown !== undefined || given.length > row.options.length) refuse(`${name} has no option ${unknown ?? given.length}`)
  return options
}

function layer(name, row) {
  return class extends Module {
    constructor(...given) {
      super()
      const options = optionsOf(name, row, given)
      Object.defineProperty(this, 'options', { value: options })
      const sizes = (texts) => texts.flatMap((text) => sizesOf(text, options))
      const weight = row.parameters.weight ? sizes(row.parameters.weight) : []
      const wrong = weight.find((size) => !is.int(size))
      if (wrong !== undefined) refuse(`${name}: ${wrong} is no size`)
      const inputs = weight.slice(1).reduce((a, b) => a * b, 1)
      const bound = inputs > 0 ? 1 / Math.sqrt(inputs) : 0
      for (const [part, texts] of Object.entries(row.parameters)) {
        if (options[part] !== false) this[part] = started(row.start[part], sizes(texts), bound).requires_grad_()
      }
      for (const [part, texts] of Object.entries(row.buffers)) this.register_buffer(part, started(row.start[part], sizes(texts)))
    }

    argument(source) {
      if (typeof source !== 'string') return source
      if (source === 'training') return this.training
      if (source === 'reduction') return REDUCTIONS[this.options.reduction] ?? refuse("reduction is 'none', 'mean' or 'sum'")
      if (source in row.parameters || source in row.buffers) return this[source]
      return source.includes('*') ? sizesOf(source, this.options) : this.options[source]
    }

    forward(...inputs) {
      if (inputs.length !== row.inputs.length || !inputs.every(is.Tensor)) refuse(`${name} is called with ${row.inputs.join(' and ').replace('self', 'input')}`)
      const named = {}
      row.inputs.forEach((input, place) => { named[input] = inputs[place] })
      for (const [argument, source] of Object.entries(row.arguments)) {
        const value = this.argument(source)
        if (value !== undefined && value !== null && !(Array.isArray(value) && value[0] === null)) named[argument] = value
      }
      return operators[row.operator](named)
    }
  }
}

// ---- modules of modules ---------------------------------------------------------------------------------

class Sequential extends Module {
  constructor(...parts) {
    super()
    if (!parts.every((part) => part instanceof Module)) refuse('Sequential takes modules')
    parts.forEach((part, place) => { this[place] = part })
  }

  forward(input) { return this.children().reduce((value, part) => part.call(value), input) }
}

// ---- training -------------------------------------------------------------------------------------------

// A learning rate that `rate` gives for each step, from that at the start.
class Scheduler {
  constructor(optimizer, rate) {
    if (typeof optimizer?.get !== 'function') refuse('a scheduler takes an optimizer first')
    Object.assign(this, { optimizer, rate, base: optimizer.get('lr'), last: -1 })
    this.step()
  }

  step() {
    this.last += 1
    this.optimizer.set('lr', this.rate(this.last, this.base))
  }

  get_last_lr() { return this.optimizer.get('lr') }
}

const positive = (option, value) => (
  typeof value === 'number' && value > 0 ? value : refuse(`${option} of a scheduler is a number above 0, not ${value}`))

const schedulers = {
  LambdaLR: (optimizer, factor) => {
    if (typeof factor !== 'function') refuse(`LambdaLR takes a function of the step, not ${typeof factor}`)
    return new Scheduler(optimizer, (step, base) => base * factor(step))
  },
  StepLR: (optimizer, stepSize, rate = 0.1) => {
    const size = positive('step_size', stepSize), gamma = positive('gamma', rate)
    return new Scheduler(optimizer, (step, base) => base * gamma ** Math.floor(step / size))
  },
  ExponentialLR: (optimizer, rate) => {
    const gamma = positive('gamma', rate)
    return new Scheduler(optimizer, (step, base) => base * gamma ** step)
  },
  CosineAnnealingLR: (optimizer, tMax, least = 0) => {
    const most = positive('T_max', tMax)
    if (typeof least !== 'number') refuse(`eta_min of a scheduler is a number, not ${least}`)
    return new Scheduler(optimizer, (step, base) => least + ((base - least) * (1 + Math.cos((Math.PI * step) / most))) / 2)
  },
}

// Tensors of one length in batches of their first dimension: for (const [x, y] of dataLoader([xs, ys], { batch_size: 32 })).
function dataLoader(tensors, { batch_size: size = 1, shuffle = false, drop_last: dropLast = false } = {}) {
  if (!Array.isArray(tensors) || !tensors.length || !tensors.every(is.Tensor)) refuse('DataLoader takes an array of tensors')
  if (!Number.isInteger(size) || size < 1) refuse(`a batch has one sample or more, not ${size}`)
  const count = tensors[0].shape[0]
  if (tensors.some((each) => each.shape[0] !== count)) refuse('the tensors of a loader have one length')
  return {
    length: dropLast ? Math.floor(count / size) : Math.ceil(count / size),
    * [Symbol.iterator]() {
      const order = shuffle ? operators.randperm(count) : null
      for (let first = 0; first < count; first += size) {
        const taken = Math.min(size, count - first)
        if (dropLast && taken < size) return
        const chosen = order && order.narrow(0, first, taken)
        yield tensors.map((each) => (chosen ? each.index_select(0, chosen) : each.narrow(0, first, taken)))
      }
    },
  }
}

module.exports = {
  nn: { Module, Sequential, ...Object.fromEntries(Object.entries(layers).map(([name, row]) => [name, layer(name, row)])) },
  schedulers, dataLoader,
}
