// JavaScript functions that libtorch calls: gradients of functions of the user's own, and hooks on gradients; streams.
//
// JavaScript runs in one thread. Gradients on a CPU are computed in the thread that asks for them, those on another
// device in threads of libtorch's own: so functions and hooks take tensors on a CPU only.
'use strict'

const { C, Owner, Tensor, TenfoldError, callbacks, fail, handleOf, heldBy, hold, koffi, made, own, refuse } = require('./core')
const { is, toDevice, toTensors } = require('./convert')

const known = new Map() // what may be called, by its number, which C knows it by
let last = 0
let thrown // the error that the last callback ended with

function register(entry) {
  last += 1
  known.set(last, entry)
  return last
}

const onCpu = (x) => x.device === 'cpu'
const share = (tensor) => made(tensor, C.tn_tensor_share, handleOf(tensor))
const shared = (handle) => (handle === 0 ? null : own(made(null, C.tn_tensor_share, handle)))

// Tensors that C lends, and null for what is undefined.
function lent(array, count) {
  return count ? Array.from(koffi.decode(array, 'uint64_t', count), (each) => shared(Number(each))) : []
}

function give(answer, outputs, count, who, needed) {
  const given = Array.isArray(answer) ? answer : [answer]
  if (given.length > count) refuse(`${who} gave ${given.length} results, not ${count}`)
  const handles = []
  for (let place = 0; place < count; place += 1) {
    const each = given[place] ?? null
    if (each !== null && (!is.Tensor(each) || !onCpu(each))) refuse(`${who}: result ${place} is no tensor on a CPU`)
    if (each === null && needed) refuse(`${who}: result ${place} is no tensor`)
    handles.push(each === null ? 0 : share(each))
  }
  koffi.encode(outputs, 'uint64_t', handles, count)
}

// A body that never throws: its error is kept, and C is told of it.
const guarded = (body) => (...given) => {
  try {
    body(...given)
    return 0
  } catch (error) {
    thrown = error
    return C.tn_fail(String(error?.message ?? error))
  }
}

// Check the status of a call that may have called JavaScript, whose own error is then thrown.
function checkCallbacks(status) {
  const problem = thrown
  thrown = undefined
  if (status === 0) return
  if (problem === undefined || C.tn_error_code() !== 9) fail()
  C.tn_error_clear()
  throw problem
}

// ---- functions with a gradient of their own -------------------------------------------------------------

const lending = Symbol('a context that C lends') // without which no context is made

class Context {
  #pointer
  constructor(origin, pointer, count) {
    if (origin !== lending) refuse('a context is given to forward and backward, and not made by new')
    this.#pointer = pointer
    this.needs_input_grad = Array.from({ length: count }, (_, place) => C.tn_context_needs_grad(pointer, place) === 1)
  }

  // In forward: keep tensors for backward, where they are saved_tensors.
  save_for_backward(...tensors) {
    if (!tensors.every(is.Tensor)) refuse('save_for_backward: tensors are kept')
    if (C.tn_context_save(this.#pointer, ...toTensors(tensors, 0)) !== 0) fail()
  }

  // In backward, once.
  restore() {
    const count = C.tn_context_saved_count(this.#pointer)
    if (count < 0) fail()
    this.saved_tensors = []
    for (let place = 0; place < count; place += 1) {
      this.saved_tensors.push(own(made(null, C.tn_context_saved, this.#pointer, place)))
    }
  }

  close() { this.#pointer = 0 }
}

const forward = callbacks.register('tn_forward_fn', guarded((pointer, inputs, n, outputs, m, user) => {
  const context = new Context(lending, pointer, Number(n))
  const answer = known.get(Number(user)).forward(context, ...lent(inputs, Number(n)))
  context.close()
  give(answer, outputs, Number(m), 'forward', true)
}))

const backward = callbacks.register('tn_backward_fn', guarded((pointer, gradients, n, outputs, m, user) => {
  const context = new Context(lending, pointer, Number(m))
  context.restore()
  context.close()
  const answer = known.get(Number(user)).backward(context, ...lent(gradients, Number(n)))
  give(answer, outputs, Number(m), 'backward', false)
}))

// A function of tensors whose gradient is written by hand: { forward, backward, results: 1 }. Both get a context first;
// backward then gets the gradients of the results and gives those of the inputs, null for none. It lasts as long as the
// process, since a graph may call it at any time.
function autogradFunction({ forward: compute, backward: differentiate, results = 1, name = 'a JavaScript function' } = {}) {
  if (typeof compute !== 'function' || typeof differentiate !== 'function') {
    refuse('autograd_function: an object with the functions forward and backward')
  }
  if (!Number.isInteger(results) || results < 1) refuse('autograd_function: results is a number of tensors')
  const number = register({ forward: compute, backward: differentiate })
  const handle = made(null, C.tn_function_new, name, forward, backward, results, number, null)
  return (...inputs) => {
    if (!inputs.every(is.Tensor)) refuse('a function with a gradient of its own takes tensors')
    if (!inputs.every(onCpu)) {
      throw new TenfoldError('not_available', 'JavaScript cannot compute gradients in another thread: a function of its own takes tensors on a CPU')
    }
    const outs = new BigUint64Array(results)
    checkCallbacks(C.tn_function_call(handle, ...toTensors(inputs, 0), outs, results))
    const found = Array.from(outs, (each) => own(Number(each)))
    return results === 1 ? found[0] : found
  }
}

// ---- hooks ----------------------------------------------------------------------------------------------

const hook = callbacks.register('tn_hook_fn', guarded((gradient, out, user) => {
  const answer = known.get(Number(user))(shared(Number(gradient)))
  if (answer === undefined || answer === null) return
  if (!is.Tensor(answer)) refuse(`a hook returns a tensor or nothing, not a ${typeof answer}`)
  koffi.encode(out, 'uint64_t', [share(answer)], 1)
}))

// Have fn called with each gradient of a tensor; a tensor that it returns takes the gradient's place. The hook stays,
// and what it refers to with it, until remove() is called.
Tensor.prototype.register_hook = function registerHook(fn) {
  if (typeof fn !== 'function') refuse('register_hook: a function of the gradient')
  if (!onCpu(this)) throw new TenfoldError('not_available', 'JavaScript cannot run in another thread: a hook is for a tensor on a CPU')
  const number = register(fn)
  let handle = C.tn_hook_new(handleOf(this), hook, number, null)
  if (handle === 0) {
    known.delete(number)
    fail()
  }
  return {
    remove() {
      if (handle !== 0) C.tn_hook_free(handle)
      handle = 0
      known.delete(number)
    },
  }
}

// ---- streams --------------------------------------------------------------------------------------------

const queue = (stream) => heldBy(stream, C.tn_stream_free)

// A queue of work on a CUDA device.
class Stream extends Owner {
  constructor(device = 'cuda') {
    super()
    hold(this, C.tn_stream_new(toDevice(device)), C.tn_stream_free)
  }

  // Call a function, whose work goes into this queue.
  run(fn) {
    const scope = C.tn_stream_begin(queue(this))
    if (scope < 0) fail()
    try {
      const result = fn()
      if (result instanceof Promise) refuse('run: the function must not be async')
      return result
    } finally {
      C.tn_scope_end(scope)
    }
  }

  synchronize() {
    if (C.tn_stream_synchronize(queue(this)) !== 0) fail()
  }

  // Whether all that was asked of it is done.
  query() {
    const answer = C.tn_stream_query(queue(this))
    return answer < 0 ? fail() : answer === 1
  }

  // Wait for what another stream, or the default one, was asked so far.
  wait(other) {
    if (other && !(other instanceof Stream)) refuse('wait: a stream, or nothing')
    if (C.tn_stream_wait(queue(this), other ? queue(other) : 0) !== 0) fail()
  }

  // Keep a tensor's memory until this stream is done with it.
  record(tensor) {
    if (C.tn_stream_record(queue(this), is.Tensor(tensor) ? handleOf(tensor) : refuse('record: a tensor')) !== 0) fail()
  }
}

module.exports = { Stream, autogradFunction, checkCallbacks }
