-- Lua functions that libtorch calls: gradients of functions of the user's own, and hooks on gradients; and streams.
--
-- Lua runs in one thread. Gradients on a CPU are computed in the thread that asks for them, those on another device in
-- threads of libtorch's own: so functions and hooks take tensors on a CPU only. And C must not call Lua from inside
-- compiled code: once there is a function or a hook, what may call it is called by the interpreter.

local ffi = require("ffi")
local core = require("tenfold.convert")

local C, is, fail, own = core.C, core.is, core.fail, core.own
local functions = {}

local known, last = {}, 0  -- what may be called, by its number, which C knows it by
local raised               -- the error that the last callback ended with

local function number_of(user) return tonumber(ffi.cast("intptr_t", user)) end

local function register(entry)
  last = last + 1
  known[last] = entry
  core.state.callbacks = true
  return last, ffi.cast("void *", ffi.cast("intptr_t", last))
end

-- Tensors that C lends, and false for what is undefined.
local function lent(array, count)
  local given = {}
  for i = 1, tonumber(count) do
    local handle = array[i - 1]
    given[i] = handle ~= nil and own(core.made(C.tn_tensor_share, handle)) or false
  end
  return given
end

local function give(made, outputs, count, who, needed)
  if #made > tonumber(count) then core.refuse("%s gave %d results, not %d", who, #made, tonumber(count)) end
  for i = 1, tonumber(count) do
    local each = made[i]
    if is.tensor(each) then
      if tostring(each.device) ~= "cpu" then core.refuse("%s gives tensors on a CPU", who) end
    elseif needed or each then
      core.refuse("%s: result %d is no tensor", who, i)
    end
  end
  for i = 1, tonumber(count) do
    if made[i] then outputs[i - 1] = core.made(C.tn_tensor_share, made[i].handle) end
  end
end

-- A body that never raises: its error is kept, and C is told of it.
local function guarded(body)
  return function(...)
    local succeeded, problem = pcall(body, ...)
    if succeeded then return 0 end
    raised = problem
    return C.tn_fail(tostring(problem))
  end
end

-- Raise what a callback raised, or what the library says.
local function fail_after_callback()
  local problem = raised
  raised = nil
  if problem == nil or tonumber(C.tn_error_code()) ~= 9 then fail() end
  C.tn_error_clear()
  error(problem, 0)
end

-- Call C where it may call Lua.
local function call_interpreted(f, ...)
  raised = nil
  if f(...) ~= 0 then fail_after_callback() end
end
jit.off(call_interpreted)

-- Call a function of C's that computes gradients.
function core.compute_gradients(f, ...)
  if core.state.callbacks then return call_interpreted(f, ...) end
  if f(...) ~= 0 then fail() end
end

-- ---- functions with a gradient of their own -------------------------------------------------------------

local Context = {}
Context.__index = Context

-- In forward: keep tensors for backward, where they are context.saved_tensors.
function Context:save_for_backward(...)
  local given = { ... }
  if not is.tensors(given) then core.refuse("save_for_backward: tensors are kept") end
  if self.pointer == nil then core.refuse("save_for_backward: forward is over") end
  local array, n = core.convert.tensors(given)
  if C.tn_context_save(self.pointer, array, n) ~= 0 then fail() end
end

local function context_of(pointer, inputs_count)
  local needed = {}
  for i = 1, inputs_count do needed[i] = C.tn_context_needs_grad(pointer, i - 1) == 1 end
  return setmetatable({ pointer = pointer, needs_input_grad = needed }, Context)
end

local forward = ffi.cast("tn_forward_fn", guarded(function(pointer, inputs, n, outputs, m, user)
  local context = context_of(pointer, tonumber(n))
  local made = { known[number_of(user)].forward(context, unpack(lent(inputs, n))) }
  context.pointer = nil
  give(made, outputs, m, "forward", true)
end))

local backward = ffi.cast("tn_backward_fn", guarded(function(pointer, gradients, n, outputs, m, user)
  local context = context_of(pointer, tonumber(m))
  local saved, count = {}, tonumber(C.tn_context_saved_count(pointer))
  if count < 0 then fail() end
  for i = 1, count do saved[i] = own(core.made(C.tn_context_saved, pointer, i - 1)) end
  context.pointer, context.saved_tensors = nil, saved
  local made = { known[number_of(user)].backward(context, unpack(lent(gradients, n))) }
  give(made, outputs, m, "backward", false)
end))

local Function = {}
Function.__index = Function

-- A function of tensors whose gradient is written by hand: { forward = f, backward = g, results = 1 }. Both get a
-- context first; backward then gets the gradients of the results, and gives those of the inputs, nil or false for none.
-- It lasts as long as Lua does, since a graph may call it at any time.
function functions.new(parts)
  if type(parts) ~= "table" or type(parts.forward) ~= "function" or type(parts.backward) ~= "function" then
    core.refuse("autograd_function: a table with the functions forward and backward")
  end
  local results = parts.results or 1
  if not is.int(results) or results < 1 then core.refuse("autograd_function: results is a number of tensors") end
  local _, user = register({ forward = parts.forward, backward = parts.backward })
  local handle = core.made(C.tn_function_new, parts.name or "a Lua function", forward, backward, results, user, nil)
  return setmetatable({ handle = handle, results = results }, Function)
end

function Function:__call(...)
  local given = { ... }
  if not is.tensors(given) then core.refuse("a function with a gradient of its own takes tensors") end
  for _, each in ipairs(given) do
    if tostring(each.device) ~= "cpu" then
      core.raise("not_available", "Lua cannot compute gradients in another thread: a function of its own takes tensors on a CPU")
    end
  end
  local array, n = core.convert.tensors(given)
  local made = core.new_outs(self.results)
  call_interpreted(C.tn_function_call, self.handle, array, n, made, self.results)
  local found = {}
  for i = 1, self.results do found[i] = own(made[i - 1]) end
  return unpack(found)
end

-- ---- hooks ----------------------------------------------------------------------------------------------

local hook = ffi.cast("tn_hook_fn", guarded(function(gradient, out, user)
  local found = known[number_of(user)](own(core.made(C.tn_tensor_share, gradient)))
  if found == nil then return end
  if not is.tensor(found) then core.refuse("a hook returns a tensor or nothing, not a %s", type(found)) end
  out[0] = core.made(C.tn_tensor_share, found.handle)
end))

local Hook = {}
Hook.__index = Hook

-- Have fn called with each gradient of a tensor; a tensor that it returns takes the gradient's place. The hook stays,
-- and what it refers to with it, until remove() is called.
function core.methods.register_hook(self, fn)
  if type(fn) ~= "function" then core.refuse("register_hook: a function of the gradient") end
  if tostring(self.device) ~= "cpu" then
    core.raise("not_available", "Lua cannot run in another thread: a hook is for a tensor on a CPU")
  end
  local number, user = register(fn)
  local handle = C.tn_hook_new(self.handle, hook, user, nil)
  if handle == nil then
    known[number] = nil
    fail()
  end
  return setmetatable({ handle = handle, number = number }, Hook)
end

function Hook:remove()
  if self.handle ~= nil then
    C.tn_hook_free(self.handle)
    self.handle, known[self.number] = nil, nil
  end
end

-- ---- streams --------------------------------------------------------------------------------------------

local Stream = { free = core.free_object }
Stream.__index = Stream

-- A queue of work on a CUDA device.
function functions.stream(device)
  return core.object(Stream, C.tn_stream_new(core.convert.device(device or "cuda")), C.tn_stream_free)
end

-- Call a function, whose work goes into this queue.
function Stream:run(fn, ...)
  local scope = C.tn_stream_begin(core.live(self))
  if scope < 0 then fail() end
  return core.end_scope(scope, pcall(fn, ...))
end

function Stream:synchronize()
  if C.tn_stream_synchronize(core.live(self)) ~= 0 then fail() end
end

-- Whether all that was asked of it is done.
function Stream:query()
  local answer = C.tn_stream_query(core.live(self))
  if answer < 0 then fail() end
  return answer == 1
end

-- Wait for what another stream, or the default one, was asked so far.
function Stream:wait(other)
  if C.tn_stream_wait(core.live(self), other and core.live(other) or nil) ~= 0 then fail() end
end

-- Keep a tensor's memory until this stream is done with it.
function Stream:record(tensor)
  if not is.tensor(tensor) then core.refuse("record: a tensor") end
  if C.tn_stream_record(core.live(self), tensor.handle) ~= 0 then fail() end
end

return functions
