// Tenfold for Node: libtorch's tensors, operators, gradients, optimizers and script modules.
import type { Operators } from './generated/operators'
import type * as types from './types'

declare class TenfoldError extends Error {
  /** Such as TN_ERROR_INDEX. */
  readonly code: types.ErrorCode
  readonly number: number
}

interface Tenfold extends Operators {
  readonly TenfoldError: typeof TenfoldError
  readonly Tensor: abstract new (...given: never[]) => types.Tensor
  readonly ops: Operators
  tensor(
    values: types.Nested | types.Elements,
    named?: { dtype?: types.DType; shape?: number[]; requires_grad?: boolean },
  ): types.Tensor
  readonly optim: {
    readonly SGD: types.OptimizerKind
    readonly Adam: types.OptimizerKind
    readonly AdamW: types.OptimizerKind
    readonly RMSprop: types.OptimizerKind
    readonly Adagrad: types.OptimizerKind
  }
  readonly nn: types.Networks
  readonly lr_scheduler: {
    LambdaLR(optimizer: types.Optimizer, factor: (step: number) => number): types.Scheduler
    StepLR(optimizer: types.Optimizer, size: number, gamma?: number): types.Scheduler
    ExponentialLR(optimizer: types.Optimizer, gamma: number): types.Scheduler
    CosineAnnealingLR(optimizer: types.Optimizer, most: number, least?: number): types.Scheduler
  }
  /** Tensors of one length in batches of their first dimension. */
  DataLoader(
    tensors: types.Tensor[], named?: { batch_size?: number; shuffle?: boolean; drop_last?: boolean },
  ): Iterable<types.Tensor[]> & { readonly length: number }
  readonly jit: {
    trace(
      fn: (...inputs: types.Tensor[]) => types.Tensor | types.Tensor[], examples: types.Tensor[], results?: number,
    ): types.Module
    load(path: string, device?: types.Device): types.Module
    compile(source: string): types.Module
  }
  grad(
    outputs: types.Tensor | types.Tensor[],
    inputs: types.Tensor | types.Tensor[],
    named?: { gradients?: types.Tensor[]; retain_graph?: boolean; create_graph?: boolean; allow_unused?: boolean },
  ): (types.Tensor | null)[]
  no_grad<T>(fn: () => T): T
  enable_grad<T>(fn: () => T): T
  inference_mode<T>(fn: () => T): T
  /** Inside, a gradient that is NaN is an error. */
  detect_anomaly<T>(fn: () => T): T
  is_grad_enabled(): boolean
  autograd_function<Results extends types.Tensor | types.Tensor[] = types.Tensor>(parts: {
    forward(context: types.Context, ...inputs: types.Tensor[]): types.Tensor | types.Tensor[]
    backward(context: types.Context, ...gradients: (types.Tensor | null)[]): types.Tensor | null | (types.Tensor | null)[]
    results?: number
    name?: string
  }): (...inputs: types.Tensor[]) => Results
  /** A queue of work on a CUDA device. */
  stream(device?: types.Device): types.Stream
  train_step(
    module: types.Module, optimizer: types.Optimizer, loss: string, inputs: types.Tensor[], target: types.Tensor,
  ): types.Tensor
  loss(name: string, input: types.Tensor, target: types.Tensor): types.Tensor
  call(name: string, ...given: types.Value[]): types.Value
  tuple(...entries: types.Value[]): types.Value[]
  save(path: string, tensors: { [name: string]: types.Tensor }): void
  load(path: string): { [name: string]: types.Tensor }
  /** Free every tensor that a function makes and does not return. */
  scope<T>(fn: () => T): T
  keep(tensor: types.Tensor): types.Tensor
  collect(): void
  set_pressure(bytes: number): void
  double(number: number): types.Typed
  complex_number(re: number, im: number): types.Typed
  generator(seed: types.Int, device?: types.Device): types.Generator
  version(): string
  torch_version(): string
  cuda_available(): boolean
  live_tensors(): number
  live_bytes(): number
  peak_bytes(): number
  reset_peak_bytes(): void
  manual_seed(seed: types.Int): void
  set_threads(count: number): void
}

declare const tenfold: Tenfold
export = tenfold
