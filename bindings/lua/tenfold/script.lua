-- TorchScript modules: traced from Lua functions, loaded, saved, called, trained in one call a step.

local ffi = require("ffi")
local core = require("tenfold.convert")
local values = require("tenfold.values")

local C, is, fail = core.C, core.is, core.fail
local script, Module = {}, {}
Module.__index = Module
script.Module = Module

local function module(handle) return core.object(Module, handle, C.tn_module_free) end

local function text(name, what)
  if not core.is.string(what) then
    core.refuse("%s: a string is needed, not a %s", name, type(what) == "string" and "string with a zero byte" or type(what))
  end
  return what
end

-- Load a module from a TorchScript file, onto a device if one is named.
function script.load(path, device)
  return module(C.tn_module_load(text("load", path), core.convert.maybe_device(device)))
end

-- A module whose methods are the functions of a TorchScript source.
function script.compile(source) return module(C.tn_module_compile(text("compile", source))) end

-- Run fn once on example tensors, and keep what it computed as a module. It gets tensors and returns tensors.
function script.trace(fn, examples, results)
  if type(fn) ~= "function" then core.refuse("trace: the first argument is a function") end
  if not is.tensors(examples) then core.refuse("trace: the examples are a table of tensors") end
  local raised
  local function body(inputs, count, outputs, outputs_count)
    local given = {}
    for i = 1, tonumber(count) do given[i] = core.own(C.tn_tensor_share(inputs[i - 1])) end
    local made = { fn(unpack(given)) }
    if #made ~= tonumber(outputs_count) or not is.tensors(made) then
      core.refuse("trace: the function returns %d tensors, told by the third argument", tonumber(outputs_count))
    end
    for i, each in ipairs(made) do outputs[i - 1] = C.tn_tensor_share(each.handle) end
  end
  local callback = ffi.cast("tn_trace_fn", function(inputs, count, outputs, outputs_count)
    local succeeded, message = pcall(body, inputs, count, outputs, outputs_count)
    if succeeded then return 0 end
    raised = message
    return C.tn_fail(tostring(message))
  end)
  local array, n = core.convert.tensors(examples)
  local handle = C.tn_module_trace(callback, array, n, results or 1, nil)
  callback:free()
  if handle == nil and raised ~= nil then
    C.tn_error_clear()
    error(raised, 0)
  end
  return module(handle)
end
jit.off(script.trace)  -- C calls back into Lua, which compiled code does not allow

function Module:save(path)
  if C.tn_module_save(core.live(self), text("save", path)) ~= 0 then fail() end
end

-- Call a method on any values.
function Module:call(method, ...)
  local handle = core.live(self)
  text("call", method)
  return values.through_stack(function(stack) return C.tn_module_call(handle, method, stack) end, ...)
end

function Module:__call(...) return self:call("forward", ...) end

local function value(made)
  if made == nil then fail() end
  return values.from(ffi.gc(made, C.tn_value_free))
end

-- The parameters by name; changing these tensors in place changes the module.
function Module:parameters() return value(C.tn_module_parameters(core.live(self))) end
function Module:buffers() return value(C.tn_module_buffers(core.live(self))) end
function Module:methods() return value(C.tn_module_methods(core.live(self))) end
function Module:attribute(name)
  return value(C.tn_module_attribute(core.live(self), text("attribute", name)))
end

function Module:train(training)
  if C.tn_module_train(core.live(self), training ~= false) ~= 0 then fail() end
  return self
end
function Module:eval() return self:train(false) end

function Module:to(device)
  if not is.device(device) then core.refuse("to: %s is no device", tostring(device)) end
  if C.tn_module_to(core.live(self), core.convert.device(device)) ~= 0 then fail() end
  return self
end

function Module:code() return core.text(C.tn_module_code, core.live(self)) end
function Module:graph(method) return core.text(C.tn_module_graph, core.live(self), method or "forward") end

Module.free = core.free_object

-- One whole step of training: the loss of that name, such as "mse_loss", comes back.
function script.train_step(module, optimizer, loss, inputs, target)
  if not is.tensors(inputs) then core.refuse("train_step: the inputs are a table of tensors") end
  if not is.tensor(target) then core.refuse("train_step: the target is a tensor") end
  local array, n = core.convert.tensors(inputs)
  local made
  core.compute_gradients(function(...)
    made = C.tn_train_step(...)
    return made == nil and -1 or 0
  end, core.live(module), core.live(optimizer), text("train_step", loss), array, n, target.handle)
  return core.own(made)
end

return script
