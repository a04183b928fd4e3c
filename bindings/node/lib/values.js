// JavaScript's values as libtorch's and back: null, booleans, numbers, strings, tensors, arrays, tuples, objects.
'use strict'

const { C, Tensor, fail, made, own, refuse, text } = require('./core')
const enums = require('../generated/enums.json')
const { fromScalar, is, liveHandle, toInts, toScalar, toTensors } = require('./convert')

const { none: NONE, tensor: TENSOR, string: STRING, list: LIST, tuple: TUPLE, dict: DICT, bool: BOOL } = enums.tag

// An array that is a tuple, where a list is not what is meant.
class Tuple extends Array {}
const tuple = (...entries) => Tuple.from(entries)

// Handles that are freed when the function is done with them.
function holding(use) {
  const held = []
  try {
    return use((handle) => {
      held.push(handle || fail())
      return handle
    })
  } finally {
    for (const each of held) C.tn_value_free(each)
  }
}

const array = (handles) => BigUint64Array.from(handles.length ? handles : [0], BigInt)

function list(entries, hold) {
  if (entries.length && entries.every(is.int)) return C.tn_value_int_list(...toInts(entries, 0))
  if (entries.length && entries.every((x) => typeof x === 'number')) {
    return C.tn_value_double_list(Float64Array.from(entries), entries.length)
  }
  if (entries.length && entries.every(is.Tensor)) return C.tn_value_tensor_list(...toTensors(entries, 0))
  const parts = entries.map((each) => toValue(each, hold))
  return C.tn_value_list(array(parts), parts.length)
}

// A tn_value, which `hold` frees later.
function toValue(x, hold) {
  if (x === null || x === undefined) return hold(C.tn_value_none())
  if (x instanceof Tensor) return hold(C.tn_value_tensor(liveHandle(x)))
  if (is.str(x)) return hold(C.tn_value_string(x))
  if (typeof x === 'string') refuse("a string with a zero byte is no value of libtorch's")
  if (is.Scalar(x)) return hold(C.tn_value_scalar(toScalar(x)))
  if (x instanceof Tuple) {
    const parts = Array.from(x, (each) => toValue(each, hold))
    return hold(C.tn_value_tuple(array(parts), parts.length))
  }
  if (Array.isArray(x)) return hold(list(x, hold))
  if (typeof x === 'object' && Object.getPrototypeOf(x) === Object.prototype) {
    const keys = Object.keys(x).map((each) => toValue(each, hold))
    const held = Object.values(x).map((each) => toValue(each, hold))
    return hold(C.tn_value_dict(array(keys), array(held), keys.length))
  }
  return refuse(`a ${typeof x} is no value of libtorch's`)
}

const entries = (value, at, hold) => Array.from({ length: Number(C.tn_value_count(value)) }, (_, i) => (
  fromValue(hold(at(value, i)), hold)
))

// What a tn_value holds: lists and tuples are arrays, dicts objects by key.
function fromValue(value, hold) {
  const tag = C.tn_value_tag(value)
  if (tag < 0) fail()
  if (tag === NONE) return null
  if (tag === TENSOR) return own(made(null, C.tn_value_to_tensor, value))
  if (tag === STRING) return text(C.tn_value_to_string, value)
  if (tag === LIST) return entries(value, C.tn_value_at, hold)
  if (tag === TUPLE) return Tuple.from(entries(value, C.tn_value_at, hold))
  if (tag === DICT) {
    const keys = entries(value, C.tn_value_key_at, hold)
    const held = entries(value, C.tn_value_at, hold)
    return Object.fromEntries(keys.map((key, place) => [key, held[place]]))
  }
  if (tag > BOOL) return text(C.tn_value_print, value)
  const bytes = Buffer.alloc(24)
  if (C.tn_value_to_scalar(value, bytes) !== 0) fail()
  return fromScalar(bytes)
}

// The value of an owned handle, which is freed.
const taken = (handle) => holding((hold) => fromValue(hold(handle), hold))

// Push arguments, have `call` replace them by results, and return these: one, or an array.
function throughStack(call, given) {
  const stack = C.tn_stack_new() || fail()
  try {
    holding((hold) => given.forEach((each) => {
      if (C.tn_stack_push(stack, toValue(each, hold)) !== 0) fail()
    }))
    if (call(stack) !== 0) fail()
    const results = Array.from({ length: Number(C.tn_stack_count(stack)) }, (_, i) => taken(C.tn_stack_at(stack, i)))
    return results.length === 1 ? results[0] : results
  } finally {
    C.tn_stack_free(stack)
  }
}

// Call any operator of libtorch by its full name, such as aten::add.Tensor.
function call(name, ...given) {
  if (!is.str(name)) refuse("call: the operator's name is a string without zero bytes")
  return throughStack((stack) => C.tn_call(name, stack), given)
}

module.exports = { Tuple, call, taken, throughStack, tuple }
