// A function for every operator of the table: which overload is meant, its call, its results.
'use strict'

const { C, Tensor, check, fail, handleOf, made, own, ownList, ownMaybe, refuse } = require('./core')
const { Typed, checkOf, putterOf } = require('./convert')
const table = require('../generated/operators.json')

const isNamed = (x) => x !== null && typeof x === 'object' && Object.getPrototypeOf(x) === Object.prototype
const absent = (x) => x === null || x === undefined

// An overload of the table, ready to be called.
class Overload {
  constructor(described) {
    Object.assign(this, described)
    this.arguments = described.arguments.map(([name, code, needed, pointer, fallback]) => ({
      name, code, needed, fallback, fits: checkOf(code), put: putterOf(code, pointer), optional: pointer,
    }))
    this.names = new Set(this.arguments.map((each) => each.name))
  }

  // The arguments in order, or why they do not fit.
  bind(given, named) {
    if (given.length > this.positional) return 'takes fewer arguments in order'
    const bound = []
    for (const [place, argument] of this.arguments.entries()) {
      let value = given[place]
      const byName = named !== null && Object.hasOwn(named, argument.name)
      if (byName) {
        if (!absent(value)) return `${argument.name} is given twice`
        value = named[argument.name]
      }
      if (absent(value)) {
        if (argument.needed && !(byName && argument.optional)) return `${argument.name} is missing`
        value = argument.fallback
      } else if (!argument.fits(value)) return `${argument.name} is a ${argument.code}`
      bound.push(value)
    }
    for (const name of named === null ? [] : Object.keys(named)) {
      if (!this.names.has(name)) return `has no argument ${name}`
    }
    return bound
  }

  call(bound) {
    const keywords = bound.slice(this.positional)
    const [name, ...places] = this.plain !== null && keywords.every(absent) ? this.plain : this.full
    const given = []
    for (const place of places) this.arguments[place].put(bound[place], given)
    const f = C[name]
    if (this.result === 'tensor') return own(made(bound, f, ...given))
    if (this.result === 'written') {
      if (f(...given) !== 0) fail()
      return this.written.length === 1 ? bound[this.written[0]] : this.written.map((place) => bound[place])
    }
    if (this.result === 'tensors') {
      const outs = new BigUint64Array(this.results)
      check(bound, f, ...given, outs)
      return Array.from(outs, (handle) => ownMaybe(Number(handle)))
    }
    if (this.result === 'list') {
      const [outs, count] = [new BigUint64Array(1), new BigInt64Array(1)]
      check(bound, f, ...given, outs, count)
      return ownList(outs, count)
    }
    const answer = new Uint8Array(1)
    check(bound, f, ...given, answer)
    return answer[0] !== 0
  }
}

function kindOf(x) {
  if (x instanceof Tensor) return 'tensor'
  if (x instanceof Typed) return 'scalar'
  if (Array.isArray(x)) return x.length ? `[${kindOf(x[0])}, …]` : '[]'
  if (isNamed(x)) return `{ ${Object.entries(x).map(([name, value]) => `${name}: ${kindOf(value)}`).join(', ')} }`
  if (typeof x === 'number' && !Number.isInteger(x)) return 'number with a fraction'
  return x === null ? 'null' : typeof x
}

function resolver(name, overloads, spread) {
  return (...all) => {
    let given = all
    while (given.length && given.at(-1) === undefined) given = given.slice(0, -1)
    let named = null
    if (given.length && isNamed(given.at(-1))) {
      named = given.at(-1)
      given = given.slice(0, -1)
    }
    const attempts = [given]
    if (spread !== undefined && given.length > spread && given.slice(spread).every(checkOf('int'))) {
      attempts.push([...given.slice(0, spread), given.slice(spread)])
    }
    const reasons = []
    for (const attempt of attempts) {
      for (const overload of overloads) {
        const bound = overload.bind(attempt, named)
        if (typeof bound !== 'string') return overload.call(bound)
        reasons.push(`  ${overload.schema}: ${bound}`)
      }
    }
    const kinds = [...given, ...(named === null ? [] : [named])].map(kindOf)
    return refuse(`${name}: cannot be called with (${kinds.join(', ')})\n${reasons.join('\n')}`)
  }
}

function build(name) {
  const { overloads, spread } = table[name]
  const resolve = resolver(name, overloads.map((each) => new Overload(each)), spread)
  const [first] = overloads
  const tensorsAlone = first.plain && first.result === 'tensor' && first.arguments.slice(0, first.positional)
    .every(([, code, , pointer]) => code === 'Tensor' && !pointer)
  // Most calls are of one or two tensors, and need no deciding.
  if (tensorsAlone && first.positional === 1) {
    const f = C[first.plain[0]]
    return (x, ...rest) => (x instanceof Tensor && rest.length === 0 ? own(made(x, f, handleOf(x))) : resolve(x, ...rest))
  }
  if (tensorsAlone && first.positional === 2) {
    const f = C[first.plain[0]]
    return (x, y, ...rest) => (x instanceof Tensor && y instanceof Tensor && rest.length === 0
      ? own(made([x, y], f, handleOf(x), handleOf(y))) : resolve(x, y, ...rest))
  }
  return resolve
}

// Functions are made when first used, and stay.
const operators = {}
for (const name of Object.keys(table)) {
  Object.defineProperty(operators, name, {
    configurable: true,
    enumerable: true,
    get() {
      const value = build(name)
      Object.defineProperty(operators, name, { value, enumerable: true })
      return value
    },
  })
  if (table[name].method) {
    Tensor.prototype[name] = function (...given) { return operators[name](this, ...given) }
  }
}

module.exports = operators
