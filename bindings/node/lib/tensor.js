// A tensor's own: its properties, what makes it from JavaScript's values and back, its elements.
'use strict'

const { C, Tensor, TenfoldError, fail, handleOf, made, own, refuse, text, truth } = require('./core')
const { DEVICES, DTYPES, fromScalar, is, liveHandle, toDevice, toInts } = require('./convert')
const operators = require('./operators')

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  bool: Uint8Array,
}
const DTYPE_OF = new Map(Object.entries(ARRAYS).filter(([name]) => name !== 'bool').map(([name, type]) => [type, name]))
const BIG = new Set(['int64', 'uint64'])

// ---- from JavaScript and back ---------------------------------------------------------------------------

const MOST_DIMENSIONS = 64 // an array that holds itself has no end

function shapeOf(values) {
  const shape = []
  for (let level = values; Array.isArray(level); level = level[0]) {
    if (shape.length === MOST_DIMENSIONS) refuse(`tensor: the arrays are nested more than ${MOST_DIMENSIONS} deep`)
    shape.push(level.length)
  }
  return shape
}

function flatten(values, shape, depth, flat) {
  if (depth === shape.length) {
    if (!['number', 'boolean', 'bigint'].includes(typeof values)) {
      refuse(`tensor: an element is ${values === null ? 'null' : `a ${typeof values}`}, and no number or boolean`)
    }
    flat.push(values)
    return flat
  }
  if (!Array.isArray(values) || values.length !== shape[depth]) {
    refuse(`tensor: the arrays are ragged: one at depth ${depth} has not ${shape[depth]} entries, as the first has`)
  }
  for (const each of values) flatten(each, shape, depth + 1, flat)
  return flat
}

function packed(flat, dtype) {
  if (dtype.includes('int')) {
    const bits = Number(dtype.match(/\d+/)[0]), fit = dtype.startsWith('u') ? BigInt.asUintN : BigInt.asIntN
    const fits = (each) => typeof each === 'boolean' || (
      (typeof each === 'bigint' || Number.isInteger(each)) && fit(bits, BigInt(each)) === BigInt(each))
    const wrong = flat.find((each) => !fits(each))
    if (wrong !== undefined) refuse(`tensor: ${wrong} is no ${dtype}`)
  }
  if (dtype === 'bool') return Uint8Array.from(flat, (each) => (each ? 1 : 0))
  return ARRAYS[dtype].from(flat, BIG.has(dtype) ? BigInt : Number)
}

// A tensor of nested arrays, a number, a boolean, or a typed array with its shape.
function tensor(values, { dtype, shape, requires_grad: requiresGrad = false } = {}) {
  if (dtype !== undefined && !is.ScalarType(dtype)) refuse(`tensor: there is no dtype ${dtype}`)
  let data
  let sizes
  let stored
  if (ArrayBuffer.isView(values)) {
    stored = DTYPE_OF.get(values.constructor)
    if (stored === undefined) refuse(`tensor: a ${values.constructor.name} has no dtype here`)
    data = values
    sizes = shape ?? [values.length]
    if (!is.int(sizes.reduce((a, b) => a * b, 1)) || sizes.reduce((a, b) => a * b, 1) !== values.length) {
      refuse(`tensor: ${values.length} elements do not fill the shape [${sizes}]`)
    }
  } else {
    sizes = shapeOf(values)
    const flat = flatten(values, sizes, 0, [])
    const wanted = dtype ?? (typeof flat[0] === 'boolean' ? 'bool' : typeof flat[0] === 'bigint' ? 'int64' : 'float32')
    stored = ARRAYS[wanted] ? wanted : wanted.startsWith('complex') ? 'float64' : 'float32'
    dtype ??= wanted
    data = packed(flat, stored)
  }
  const [array, rank] = toInts(sizes, 0)
  const bytes = data.byteLength ? data : new Uint8Array(1)
  let result = own(made(null, C.tn_tensor_from_data, bytes, DTYPES[stored], array, rank, null, 0))
  if (dtype !== undefined && dtype !== stored) result = result.to(dtype)
  return requiresGrad ? result.requires_grad_() : result
}

function nest(data, shape, depth, offset, step) {
  if (depth === shape.length) return data(offset)
  const inner = step / Math.max(shape[depth], 1)
  return Array.from({ length: shape[depth] }, (_, i) => nest(data, shape, depth + 1, offset + i * inner, inner))
}

const sizesBy = (write) => function () {
  const rank = this.dim()
  const sizes = new BigInt64Array(Math.max(rank, 1))
  if (write(handleOf(this), sizes, rank) < 0) fail()
  return Array.from(sizes.subarray(0, rank), Number)
}

const properties = {
  shape: sizesBy((...given) => C.tn_tensor_shape(...given)),
  strides: sizesBy((...given) => C.tn_tensor_strides(...given)),
  dtype() {
    const code = C.tn_tensor_dtype(handleOf(this))
    return code < 0 ? fail() : C.tn_dtype_name(code)
  },
  device() {
    const found = new Int32Array(2)
    if (C.tn_tensor_device(handleOf(this), found) !== 0) fail()
    const kind = Object.keys(DEVICES).find((each) => DEVICES[each] === found[0])
    return found[1] < 0 ? kind : `${kind}:${found[1]}`
  },
  is_leaf() { return truth(C.tn_is_leaf(handleOf(this))) },
  T() { return operators.numpy_T(this) },
}
for (const [name, get] of Object.entries(properties)) Object.defineProperty(Tensor.prototype, name, { get })

Object.defineProperty(Tensor.prototype, 'grad', {
  get() { return truth(C.tn_has_grad(handleOf(this))) ? own(made(this, C.tn_grad, handleOf(this))) : null },
  set(gradient) {
    if (C.tn_set_grad(handleOf(this), gradient === null ? 0 : liveHandle(gradient)) !== 0) fail()
  },
})
Object.defineProperty(Tensor.prototype, 'requires_grad', {
  get() { return truth(C.tn_requires_grad(handleOf(this))) },
  set(needed) { this.requires_grad_(needed) },
})

const DTYPE_METHODS = {
  float: 'float32', double: 'float64', long: 'int64', int: 'int32', bool: 'bool', half: 'float16', bfloat16: 'bfloat16',
}
for (const [name, dtype] of Object.entries(DTYPE_METHODS)) {
  Tensor.prototype[name] = function () { return this.to(dtype) }
}

const count = (found) => (found < 0 ? fail() : Number(found))

Object.assign(Tensor.prototype, {
  dim() { return count(C.tn_tensor_dim(handleOf(this))) },
  numel() { return count(C.tn_tensor_numel(handleOf(this))) },

  // The size of a dimension, or all of them.
  size(dim) {
    if (dim === undefined) return this.shape
    if (!is.int(dim)) refuse('size: a dimension is a whole number')
    return count(C.tn_tensor_size(handleOf(this), dim))
  },

  // The only element.
  item() {
    const bytes = Buffer.alloc(24)
    if (C.tn_tensor_item(handleOf(this), bytes) !== 0) fail()
    return fromScalar(bytes)
  },

  // The elements in row-major order, a typed array.
  data() {
    const type = ARRAYS[this.dtype]
    if (type === undefined) refuse(`data: JavaScript has no array of ${this.dtype}: use to('float32') first`)
    const numel = this.numel()
    const found = new type(Math.max(numel, 1)).subarray(0, numel)
    // Its own size, which C compares with the tensor's: numel and dtype are names that a program may give anew.
    if (C.tn_tensor_to_data(handleOf(this), found, found.byteLength) !== 0) fail()
    return found
  },

  // The elements as nested arrays; a number, or a boolean, of a tensor without dimensions. Integers that a number does
  // not hold exactly are bigints.
  tolist() {
    const dtype = this.dtype
    if (dtype.startsWith('complex')) refuse('tolist: of complex numbers, take view_as_real() first')
    if (ARRAYS[dtype] === undefined) return this.to('float32').tolist()
    const found = this.data()
    const exactly = (x) => (Number.isSafeInteger(Number(x)) ? Number(x) : x)
    const wrap = dtype === 'bool' ? (x) => x !== 0 : BIG.has(dtype) ? exactly : Number
    return nest((place) => wrap(found[place]), this.shape, 0, 0, found.length)
  },

  // Of another dtype, or on another device.
  to(where) {
    if (is.ScalarType(where)) return operators._to_copy(this, { dtype: where })
    if (!is.Device(where)) refuse(`to: ${where} is neither a dtype nor a device`)
    return own(made(this, C.tn_to_device, handleOf(this), toDevice(where), false))
  },

  // A part along the first dimension, counted from 0, or what a mask or indices pick.
  at(key) {
    if (key instanceof Tensor) return operators.index(this, [key])
    if (!is.int(key)) refuse(`at: a tensor cannot be indexed with a ${typeof key}`)
    return operators.select(this, 0, key)
  },

  // Write there.
  set(key, value) {
    const values = value instanceof Tensor ? value : tensor(value, { dtype: this.dtype })
    if (key instanceof Tensor) operators.index_put_(this, [key], values)
    else this.at(key).copy_(values)
    return this
  },

  is_same(other) {
    if (!(other instanceof Tensor)) refuse('is_same: the other is no tensor')
    return truth(C.tn_tensor_is_same(handleOf(this), handleOf(other)))
  },
  is_contiguous() { return truth(C.tn_tensor_is_contiguous(handleOf(this))) },
  toString() { return handleOf(this) === 0 ? 'a freed tensor' : text(C.tn_tensor_print, handleOf(this)) },
  [Symbol.for('nodejs.util.inspect.custom')]() { return this.toString() },
  toJSON() { return this.tolist() },

  // Its parts along the first dimension.
  * [Symbol.iterator]() {
    for (let i = 0, n = this.size(0); i < n; i += 1) yield this.at(i)
  },

  // JavaScript has no operators on objects; the commonest mistake is told.
  [Symbol.toPrimitive](hint) {
    if (hint === 'string') return this.toString()
    throw new TenfoldError('type', 'a tensor has no operators in JavaScript: write x.add(y), or x.item() for its number')
  },
})

module.exports = tensor
