// What operators take and give.
import type { Layers } from './generated/layers'
import type { DType } from './generated/enums'
import type { Methods } from './generated/operators'

export type { DType, ErrorCode, Layout, MemoryFormat } from './generated/enums'
export type Int = number | bigint
export type Device = 'cpu' | 'cuda' | 'meta' | `cuda:${number}`
/** A number whose type is said; made by double and complex_number. */
export interface Typed { readonly scalar: object }
/** A plain number without a fraction is an int. */
export type Scalar = number | bigint | boolean | Typed
export type Nested = number | boolean | bigint | Nested[]
export type Elements =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array
  | Uint32Array | BigUint64Array

/** What holds memory of libtorch's: freed by the collector, or by free. */
export interface Freed { free(): void }
export interface Generator extends Freed { readonly handle: number }

/** One call of a function with a gradient of its own. */
export interface Context {
  readonly needs_input_grad: boolean[]
  readonly saved_tensors: Tensor[]
  save_for_backward(...tensors: Tensor[]): void
}
export interface Stream extends Freed {
  run<T>(fn: () => T): T
  synchronize(): void
  query(): boolean
  wait(other?: Stream): void
  record(tensor: Tensor): void
}

export interface Tensor extends Methods, Freed {
  readonly handle: number
  readonly shape: number[]
  readonly strides: number[]
  readonly dtype: DType
  readonly device: string
  readonly is_leaf: boolean
  readonly T: Tensor
  grad: Tensor | null
  requires_grad: boolean
  dim(): number
  numel(): number
  size(): number[]
  size(dim: Int): number
  /** The only element. */
  item(): number | bigint | boolean | Typed
  /** The elements in row-major order. */
  data(): Elements
  tolist(): Nested
  to(where: DType | Device): Tensor
  float(): Tensor
  double(): Tensor
  long(): Tensor
  int(): Tensor
  bool(): Tensor
  half(): Tensor
  bfloat16(): Tensor
  /** A part along the first dimension, or what a mask or indices pick. */
  at(key: Int | Tensor): Tensor
  set(key: Int | Tensor, value: Nested | Tensor): this
  is_same(other: Tensor): boolean
  is_contiguous(): boolean
  register_hook(fn: (gradient: Tensor) => Tensor | null | void): { remove(): void }
  requires_grad_(needed?: boolean): this
  retain_grad(): this
  backward(named?: { gradient?: Tensor | null; retain_graph?: boolean; create_graph?: boolean }): void
  toString(): string
  toJSON(): Nested
  [Symbol.iterator](): IterableIterator<Tensor>
}

/** What script modules take and give. */
export type Value = null | boolean | number | bigint | string | Typed | Tensor | Value[] | { [key: string]: Value }

export interface Module extends Freed {
  call(method: string, ...given: Value[]): Value
  forward(...given: Value[]): Value
  save(path: string): void
  parameters(): { [name: string]: Tensor }
  buffers(): { [name: string]: Tensor }
  methods(): string[]
  attribute(name: string): Value
  train(training?: boolean): this
  eval(): this
  to(device: Device): this
  code(): string
  graph(method?: string): string
}

export interface Optimizer extends Freed {
  set(option: string, value: number | boolean): void
  get(option: string): number
  step(): void
  zero_grad(): void
  state(): Freed
  set_state(state: Freed): void
}
export type OptimizerKind = new (parameters: Tensor[], options?: { [option: string]: number | boolean }) => Optimizer

/** Something that is called with tensors, and whose own tensors and modules are found by their names. */
export declare class NetworkModule {
  training: boolean
  forward(...inputs: Tensor[]): Tensor
  call(...inputs: Tensor[]): Tensor
  register_buffer(name: string, tensor: Tensor): void
  parameters(): Tensor[]
  named_parameters(): { [name: string]: Tensor }
  state_dict(): { [name: string]: Tensor }
  load_state_dict(state: { [name: string]: Tensor }): this
  children(): NetworkModule[]
  train(mode?: boolean): this
  eval(): this
  zero_grad(): void
}

/** Options go by position or, last, in an object by name. */
export type LayerKind = new (...options: unknown[]) => NetworkModule

export interface Networks extends Layers {
  readonly Module: typeof NetworkModule
  readonly Sequential: new (...parts: NetworkModule[]) => NetworkModule
}

export interface Scheduler {
  step(): void
  get_last_lr(): number
}
