// What everything else stands on: the library, errors, the tensor as the garbage collector sees it, and scopes.
'use strict'

const koffi = require('koffi')
const v8 = require('v8')
const vm = require('vm')
const enums = require('../generated/enums.json')
const functions = require('../generated/functions.json')

// ---- errors ---------------------------------------------------------------------------------------------

// The names of tenfold.h's codes, by their numbers.
const STATUS = enums.status
const NAMES = Object.fromEntries(Object.entries(STATUS).map(([word, number]) => [number, `TN_${word.toUpperCase()}`]))

// The error of a code, or of a word such as 'index'.
class TenfoldError extends Error {
  constructor(kind, message) {
    super(message)
    this.name = 'TenfoldError'
    this.number = typeof kind === 'number' ? kind : STATUS[`error_${kind}`]
    this.code = NAMES[this.number]
  }
}

function refuse(message) {
  throw new TenfoldError('argument', message)
}

// ---- the library ----------------------------------------------------------------------------------------

// A union of numbers, of which JavaScript fills in the bits.
koffi.struct('tn_scalar', { tag: 'int32_t', unused: 'int32_t', bits: 'uint64_t', im: 'double' })
koffi.struct('tn_device', { type: 'int32_t', index: 'int32_t' })
// What C calls. A handle, and what a caller gave along as `user`, are numbers.
const CALLBACKS = {
  tn_trace_fn: '(void *inputs, int64_t n, void *outputs, int64_t m, uintptr_t user)',
  tn_trace_stack_fn: '(uint64_t stack, uintptr_t user)',
  tn_forward_fn: '(uintptr_t context, void *inputs, int64_t n, void *outputs, int64_t m, uintptr_t user)',
  tn_backward_fn: '(uintptr_t context, void *gradients, int64_t n, void *outputs, int64_t m, uintptr_t user)',
  tn_hook_fn: '(uintptr_t gradient, void *out, uintptr_t user)',
}
const POINTERS = {}
for (const [name, parameters] of Object.entries(CALLBACKS)) {
  POINTERS[name] = koffi.pointer(koffi.proto(`int32_t ${name}${parameters}`))
}
const callbacks = { register: (name, fn) => koffi.register(fn, POINTERS[name]), unregister: koffi.unregister }

function load() {
  const tried = []
  for (const path of [process.env.TENFOLD_LIBRARY, require('../generated/location.json'), 'libtenfold.so']) {
    try {
      if (path) return koffi.load(path)
    } catch (error) {
      tried.push(error.message)
    }
  }
  const help = '`tenfold capi build` builds it; TENFOLD_LIBRARY may name the libtenfold.so to load'
  throw new TenfoldError('not_available', `libtenfold cannot be loaded: ${tried.join('; ')}\n  help: ${help}`)
}

const library = load()

// The functions of the library, declared when first used.
const C = new Proxy({}, {
  get(declared, name) {
    if (declared[name] === undefined) {
      const [result, ...parameters] = functions[name]
      declared[name] = library.func(name, result, parameters.map((each) => POINTERS[each] ?? each))
    }
    return declared[name]
  },
})

const { tn_error_code: errorCode, tn_free: freeHandle, tn_live_bytes: liveBytes } = C
if (C.tn_available() !== 1) throw new TenfoldError('not_available', C.tn_error_message())

// Throw this thread's error. The handle of what was freed is NULL.
function fail() {
  const code = errorCode() || STATUS.error_internal
  const message = C.tn_error_message().replace(/ is NULL$/, ' was freed before')
  C.tn_error_clear()
  throw new TenfoldError(code, message)
}

// ---- memory ---------------------------------------------------------------------------------------------

// Tensors have slots: a weak reference to each lies beside its handle, and what a collection took is freed by `sweep`.
// A FinalizationRegistry calls it, between two turns of the event loop, when a witness was collected. A loop that
// never returns there is helped when there are too many tensors, or they hold too much: everything is collected at
// once. Weak references keep their targets until a task ends, or until microtasks are run, as an empty script does.
const state = { limit: 2 ** 28, mark: 2 ** 28, pace: 20000, scope: null, held: null }
const handles = []
const references = []
const vacant = []
const witnesses = new FinalizationRegistry(() => {
  sweep()
  witnesses.register({}, null)
})
witnesses.register({}, null)
let collectAll = null
let untilEnd = 0 // how many weak references may be made before microtasks are run for their sake

const emptyScript = new vm.Script('Promise.resolve().then(() => 0)')
const emptyContext = vm.createContext({}, { microtaskMode: 'afterEvaluate' })
function endTask() {
  emptyScript.runInContext(emptyContext)
  untilEnd = 50000
}

function release(slot) {
  const handle = handles[slot]
  handles[slot] = 0
  references[slot] = null
  vacant.push(slot)
  freeHandle(handle)
}

function sweep() {
  for (let slot = 0; slot < handles.length; slot += 1) {
    if (handles[slot] !== 0 && references[slot].deref() === undefined) release(slot)
  }
}

function collect() {
  if (collectAll === null) {
    v8.setFlagsFromString('--expose-gc')
    collectAll = vm.runInNewContext('gc')
  }
  endTask()
  collectAll()
  sweep()
  state.pace = Math.max(20000, 2 * (handles.length - vacant.length))
  state.mark = Math.max(state.limit, 1.5 * Number(liveBytes()))
}

function setPressure(bytes) {
  if (!(bytes > 0)) refuse('set_pressure: a number of bytes is above 0')
  state.limit = state.mark = bytes
}

// Call a function that makes something, 0 on failure; once more after collecting, if memory ran out. `held` is whose
// handles are given: it is used last, so that collecting does not take it.
function made(held, f, ...given) {
  const handle = f(...given)
  if (handle !== 0) return handle
  if (errorCode() !== STATUS.error_memory) fail()
  collect()
  const second = f(...given)
  state.held = held
  return second || fail()
}

function check(held, f, ...given) {
  if (f(...given) === 0) return
  if (errorCode() !== STATUS.error_memory) fail()
  collect()
  const second = f(...given)
  state.held = held
  if (second !== 0) fail()
}

// ---- tensors --------------------------------------------------------------------------------------------

const owned = Symbol('a handle that C gave') // without which no tensor is made, since C trusts handles

// A tensor's handle, 0 once it was freed. Whatever is assigned to an object or made of Tensor.prototype, only what
// `own` made has one.
let handleOf

class Tensor {
  #handle
  #slot

  static {
    handleOf = (tensor) => (#handle in tensor ? tensor.#handle : refuse('a tensor that C did not give'))
  }

  constructor(origin, handle, slot) {
    if (origin !== owned) refuse('a tensor is made by tensor, zeros and the like, and not by new')
    this.#handle = handle
    this.#slot = slot
  }

  // For a program's own calls of C.
  get handle() { return this.#handle }

  // Free it now. Using it afterwards is an error; freeing it again is not.
  free() {
    if (this.#handle !== 0) {
      this.#handle = 0
      release(this.#slot)
    }
  }
}
if (Symbol.dispose) Tensor.prototype[Symbol.dispose] = Tensor.prototype.free

// The tensor of an owned handle, in the scope that is open.
function own(handle) {
  if (liveBytes() > state.mark || (vacant.length === 0 && handles.length >= state.pace)) collect()
  untilEnd -= 1
  if (untilEnd < 0) endTask()
  const slot = vacant.length > 0 ? vacant.pop() : handles.length
  const tensor = new Tensor(owned, handle, slot)
  handles[slot] = handle
  references[slot] = new WeakRef(tensor)
  if (state.scope !== null) state.scope.made.push(tensor)
  return tensor
}

const ownMaybe = (handle) => (handle === 0 ? null : own(handle))

// The tensors of an array that C gave, which is freed.
function ownList(outs, count) {
  const n = Number(count[0])
  const shared = []
  for (const handle of koffi.decode(outs[0], 'uint64_t', n)) shared.push(own(made(null, C.tn_tensor_share, handle)))
  C.tn_free_all(outs[0], n)
  return shared
}

function tensorsIn(value, found = new Set()) {
  if (value instanceof Tensor) found.add(value)
  else if (Array.isArray(value)) value.forEach((each) => tensorsIn(each, found))
  else if (value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype) {
    Object.values(value).forEach((each) => tensorsIn(each, found))
  }
  return found
}

// Call a function, free every tensor that it made but does not return, and return what it does. Scopes nest.
function scope(fn) {
  const outer = state.scope
  const opened = { made: [], kept: new Set() }
  let result
  state.scope = opened
  try {
    result = fn()
    if (result instanceof Promise) refuse('scope: the function must not be async')
    tensorsIn(result, opened.kept)
  } finally {
    state.scope = outer
    for (const each of opened.made) {
      if (!opened.kept.has(each)) each.free()
      else if (outer !== null) outer.made.push(each)
    }
  }
  return result
}

// Let a tensor outlive the scopes that are open.
function keep(tensor) {
  state.scope?.kept.add(tensor)
  return tensor
}

// ---- other handles --------------------------------------------------------------------------------------

const objects = new FinalizationRegistry(({ handle, free }) => {
  if (handle !== 0) free(handle)
})
const holdings = new WeakMap() // by owner: its handle, and what frees it

// Give an owner its handle.
function hold(owner, handle, free) {
  const holding = { handle: handle || fail(), free }
  holdings.set(owner, holding)
  objects.register(owner, holding, owner)
  return owner
}

// The handle that an owner was given. What frees it tells its kind.
function heldBy(owner, free) {
  const holding = holdings.get(owner)
  if (holding === undefined || holding.free !== free) refuse('an object that C did not give, or one of another kind')
  if (holding.handle === 0) throw new TenfoldError('handle', 'it was freed before')
  return holding.handle
}

// What owns a handle of another kind: `free` or the collector lets it go.
class Owner {
  // For a program's own calls of C.
  get handle() { return heldBy(this, holdings.get(this)?.free) }

  free() {
    const holding = holdings.get(this)
    if (holding === undefined || holding.handle === 0) return
    objects.unregister(this)
    holding.free(holding.handle)
    holding.handle = 0
  }
}

// The text that a function writes into a buffer.
function text(f, ...given) {
  const size = f(...given, null, 0)
  if (size < 0) fail()
  const buffer = Buffer.alloc(size + 1)
  if (f(...given, buffer, size + 1) < 0) fail()
  return buffer.toString('utf8', 0, size)
}

const truth = (answer) => (answer < 0 ? fail() : answer === 1)

module.exports = {
  C, Owner, Tensor, TenfoldError, callbacks, check, collect, fail, handleOf, heldBy, hold, keep, koffi, made, own, ownList,
  ownMaybe, refuse, scope, setPressure, state, text, truth,
}
