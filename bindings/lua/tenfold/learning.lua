-- Gradients, and what improves parameters by them.

local ffi = require("ffi")
local core = require("tenfold.convert")
require("tenfold.functions")

local C, is, fail, methods = core.C, core.is, core.fail, core.methods
local learning = { optim = {} }

-- ---- gradients ------------------------------------------------------------------------------------------

function methods.requires_grad_(self, needed)
  if needed ~= nil and type(needed) ~= "boolean" then core.refuse("requires_grad_: true or false") end
  if C.tn_set_requires_grad(self.handle, needed ~= false) ~= 0 then fail() end
  return self
end

function methods.retain_grad(self)
  if C.tn_retain_grad(self.handle) ~= 0 then fail() end
  return self
end

-- Add the gradients to those of the leaves. Options: gradient, retain_graph, create_graph.
function methods.backward(self, options)
  options = options or {}
  if is.tensor(options) then options = { gradient = options } end
  local gradient = core.convert.maybe_tensor(options.gradient)
  local create = options.create_graph == true
  local retain = options.retain_graph == true or create
  core.compute_gradients(C.tn_backward_with, self.handle, gradient, retain, create)
end

-- The gradients of outputs by inputs, a table; nil ones cannot be in it, so unused inputs give `false`.
function learning.grad(outputs, inputs, options)
  options = options or {}
  if is.tensor(outputs) then outputs = { outputs } end
  if is.tensor(inputs) then inputs = { inputs } end
  if not is.tensors(outputs) or not is.tensors(inputs) then core.refuse("grad: outputs and inputs are tensors") end
  local of, of_n = core.convert.tensors(outputs)
  local by, by_n = core.convert.tensors(inputs)
  local from, from_n = core.convert.tensors(options.gradients)
  local create, made = options.create_graph == true, core.new_outs(#inputs)
  core.compute_gradients(
    C.tn_gradients, of, of_n, by, by_n, from, from_n, options.retain_graph == true or create, create,
    options.allow_unused == true, made, #inputs
  )
  local found = {}
  for i = 1, #inputs do found[i] = core.own_maybe(made[i - 1]) or false end
  return found
end

local function within(begin)
  return function(fn, ...)
    local scope = begin()
    if scope < 0 then fail() end
    return core.end_scope(scope, pcall(fn, ...))
  end
end

-- Call a function without recording for gradients; and the other two.
learning.no_grad = within(C.tn_no_grad_begin)
learning.enable_grad = within(C.tn_enable_grad_begin)
learning.inference_mode = within(C.tn_inference_begin)

-- Call a function inside of which a gradient that is NaN is an error.
learning.detect_anomaly = within(C.tn_detect_anomaly_begin)

function learning.is_grad_enabled() return C.tn_grad_enabled() == 1 end

-- ---- optimizers -----------------------------------------------------------------------------------------

local Optimizer = {}
Optimizer.__index = Optimizer

local State = { free = core.free_object }
State.__index = State

local function optimizer(make, lr)
  return function(parameters, options)
    options = options or {}
    if not is.tensors(parameters) or #parameters == 0 then
      core.refuse("an optimizer's parameters are a table of tensors")
    end
    if type(options) ~= "table" or type(options.lr or lr) ~= "number" then
      core.refuse("an optimizer's options are a table of numbers and booleans")
    end
    local array, n = core.convert.tensors(parameters)
    local made = core.object(Optimizer, make(array, n, options.lr or lr), C.tn_optimizer_free)
    for name, value in pairs(options) do made:set(name, value) end
    return made
  end
end

-- Each takes a table of parameters and a table of options, which tenfold.h lists.
learning.optim.SGD = optimizer(C.tn_optimizer_sgd, 1e-3)
learning.optim.Adam = optimizer(C.tn_optimizer_adam, 1e-3)
learning.optim.AdamW = optimizer(C.tn_optimizer_adamw, 1e-3)
learning.optim.RMSprop = optimizer(C.tn_optimizer_rmsprop, 1e-2)
learning.optim.Adagrad = optimizer(C.tn_optimizer_adagrad, 1e-2)

function Optimizer:set(option, value)
  if type(value) == "boolean" then value = value and 1 or 0 end
  if type(option) ~= "string" or type(value) ~= "number" then
    core.refuse("an optimizer's option %s is a number or a boolean", tostring(option))
  end
  if C.tn_optimizer_set(core.live(self), option, value) ~= 0 then fail() end
end

function Optimizer:get(option)
  local value = ffi.new("double[1]")
  if C.tn_optimizer_get(core.live(self), tostring(option), value) ~= 0 then fail() end
  return value[0]
end

function Optimizer:step()
  if C.tn_optimizer_step(core.live(self)) ~= 0 then fail() end
end

function Optimizer:zero_grad()
  if C.tn_optimizer_zero_grad(core.live(self)) ~= 0 then fail() end
end

-- All that an optimizer remembers, to give to set_state of another.
function Optimizer:state() return core.object(State, C.tn_optimizer_state(core.live(self)), C.tn_value_free) end
function Optimizer:set_state(state)
  if C.tn_optimizer_set_state(core.live(self), core.live(state)) ~= 0 then fail() end
end

Optimizer.free = core.free_object

return learning
