// What may be given for each type of an argument, and what C takes for it.
'use strict'

const { C, Owner, Tensor, TenfoldError, handleOf, heldBy, hold, refuse } = require('./core')
const enums = require('../generated/enums.json')
const STANDS_FOR = require('../generated/fitting.json')

const { dtype: DTYPES, layout: LAYOUTS, memory_format: FORMATS, device: DEVICES, scalar: TAGS } = enums

// A number whose type is said: double(2) is 2.0, where a plain 2 is an int.
class Typed {
  constructor(tag, bits, im) {
    this.scalar = { tag, unused: 0, bits, im }
  }
}

const view = new DataView(new ArrayBuffer(8))
function bitsOf(number) {
  view.setFloat64(0, number)
  return view.getBigUint64(0)
}
const double = (number) => new Typed(TAGS.double, bitsOf(number), 0)
const complex = (re, im) => new Typed(TAGS.complex, bitsOf(re), im)

class Generator extends Owner {
  constructor(seed, device = 'cpu') {
    if (!is.int(seed)) refuse('generator: a seed is a whole number')
    super()
    hold(this, C.tn_generator_new(toDevice(device), BigInt(seed)), C.tn_generator_free)
  }
}

// ---- what may be given ------------------------------------------------------------------------------------

const named = (table) => (x) => typeof x === 'string' && Object.hasOwn(table, x)
const many = (check) => (x) => (Array.isArray(x) || ArrayBuffer.isView(x)) && Array.prototype.every.call(x, check)

const isLong = (x) => typeof x === 'bigint' && BigInt.asIntN(64, x) === x

// Numbers by kind, and the check of an argument: any kind that stands for it.
const numbersOf = {
  bool: (x) => typeof x === 'boolean',
  int: (x) => (Number.isInteger(x) && Math.abs(x) < 2 ** 63) || isLong(x),
  float: (x) => typeof x === 'number',
  complex: (x) => x instanceof Typed,
}
const numberFor = (kind) => {
  const checks = STANDS_FOR[kind].map((name) => numbersOf[name])
  return (x) => checks.some((check) => check(x))
}

const is = {
  Tensor: (x) => x instanceof Tensor,
  int: numbersOf.int,
  float: numberFor('float'),
  bool: numbersOf.bool,
  str: (x) => typeof x === 'string' && !x.includes('\0'), // which C would take for its end
  Scalar: numberFor('Scalar'),
  ScalarType: named(DTYPES),
  Layout: named(LAYOUTS),
  MemoryFormat: named(FORMATS),
  Device: (x) => typeof x === 'string' && /^\w+(:\d+)?$/.test(x) && Object.hasOwn(DEVICES, x.split(':')[0]),
  Generator: (x) => x instanceof Generator,
}
is['Tensor?[]'] = many((x) => x === null || x instanceof Tensor)

// The check of a type such as int[2]: where a list has a fixed size, one entry may stand for all.
function checkOf(code) {
  if (is[code] === undefined) {
    const [, one, size] = /^(\w+)\[(\d*)\]$/.exec(code)
    const list = many(is[one])
    is[code] = size === '' ? list : (x) => is[one](x) || list(x)
  }
  return is[code]
}

// ---- what C takes -------------------------------------------------------------------------------------------

function toScalar(x) {
  if (x instanceof Typed) return x.scalar
  if (typeof x === 'boolean') return { tag: TAGS.bool, unused: 0, bits: x ? 1 : 0, im: 0 }
  if (typeof x === 'bigint') return { tag: TAGS.int, unused: 0, bits: BigInt.asUintN(64, x), im: 0 }
  if (Number.isInteger(x) && Math.abs(x) < 2 ** 63) {
    return { tag: TAGS.int, unused: 0, bits: BigInt.asUintN(64, BigInt(x)), im: 0 }
  }
  return { tag: TAGS.double, unused: 0, bits: bitsOf(x), im: 0 }
}

function scalarBytes(scalars) {
  const bytes = Buffer.alloc(24 * Math.max(scalars.length, 1))
  scalars.map(toScalar).forEach(({ tag, bits, im }, place) => {
    bytes.writeInt32LE(tag, 24 * place)
    bytes.writeBigUInt64LE(BigInt(bits), 24 * place + 8)
    bytes.writeDoubleLE(im, 24 * place + 16)
  })
  return bytes
}

// A scalar that C wrote, as JavaScript has it; complex ones stay as they are.
function fromScalar(bytes) {
  const tag = bytes.readInt32LE(0)
  if (tag === TAGS.int) {
    const number = bytes.readBigInt64LE(8)
    return Number.isSafeInteger(Number(number)) ? Number(number) : number
  }
  if (tag === TAGS.double) return bytes.readDoubleLE(8)
  if (tag === TAGS.bool) return bytes.readUInt8(8) !== 0
  return complex(bytes.readDoubleLE(8), bytes.readDoubleLE(16))
}

function toDevice(x) {
  if (!is.Device(x)) refuse(`there is no device ${x}: cpu, cuda, cuda:0, …`)
  const [type, index] = x.split(':')
  return { type: DEVICES[type], index: index === undefined ? -1 : Number(index) }
}

function liveHandle(tensor) {
  if (!(tensor instanceof Tensor)) refuse(`a tensor is needed, not ${tensor === null ? 'null' : `a ${typeof tensor}`}`)
  return handleOf(tensor) || refuse('a tensor that is given was freed before')
}

const numbers = (Type, wrap) => (x, size) => {
  const entries = Array.isArray(x) || ArrayBuffer.isView(x) ? Array.from(x, wrap) : Array(size).fill(wrap(x))
  return [entries.length ? Type.from(entries) : new Type(1), entries.length] // never NULL: that would be None
}
const toInts = numbers(BigInt64Array, BigInt)
const toTensors = numbers(BigUint64Array, (x) => BigInt(x === null ? 0 : liveHandle(x)))
const deviceBytes = (x) => Int32Array.of(toDevice(x).type, toDevice(x).index)

// By type: what C takes for a value; a list takes two places, the array and its count.
const plain = {
  Tensor: handleOf,
  Scalar: toScalar,
  float: Number,
  ScalarType: (x) => DTYPES[x],
  MemoryFormat: (x) => FORMATS[x],
}
const pointers = {
  Tensor: liveHandle,
  Generator: (x) => heldBy(x, C.tn_generator_free),
  str: (x) => x,
  int: (x) => BigInt64Array.of(BigInt(x)),
  float: (x) => Float64Array.of(Number(x)),
  bool: (x) => Uint8Array.of(x ? 1 : 0),
  Scalar: (x) => scalarBytes([x]),
  ScalarType: (x) => Int32Array.of(DTYPES[x]),
  Layout: (x) => Int32Array.of(LAYOUTS[x]),
  MemoryFormat: (x) => Int32Array.of(FORMATS[x]),
  Device: deviceBytes,
}
const lists = {
  Tensor: toTensors,
  int: toInts,
  float: numbers(Float64Array, Number),
  bool: numbers(Uint8Array, (x) => (x ? 1 : 0)),
  Scalar: (x) => [scalarBytes(x), x.length],
}
const HANDLES = new Set(['Tensor', 'Generator'])

// A function that puts the C arguments for a value of a type after those that are there.
function putterOf(code, pointer) {
  const [, kind, list, size] = /^(\w+)(\??\[(\d*)\])?$/.exec(code)
  if (list) {
    return (x, into) => {
      if (x === null || x === undefined) into.push(null, 0)
      else into.push(...lists[kind](x, Number(size) || 1))
    }
  }
  if (pointer) {
    const none = HANDLES.has(kind) ? 0 : null
    return (x, into) => into.push(x === null || x === undefined ? none : pointers[kind](x))
  }
  const converted = plain[kind]
  return converted ? (x, into) => into.push(converted(x)) : (x, into) => into.push(x)
}

module.exports = {
  DEVICES, DTYPES, Generator, Typed, checkOf, complex, deviceBytes, double, fromScalar, liveHandle, is, putterOf, toDevice, toInts,
  toScalar, toTensors,
}
