-- Tenfold for LuaJIT: libtorch's tensors, operators, gradients, optimizers and script modules.
--
--   local tn = require("tenfold")
--   local x = tn.randn(2, 3)
--   print((x + 1):relu():sum(1))
--
-- Names, their arguments and the numbering of dimensions from 0 are PyTorch's. The last argument may be a table of
-- arguments by name: x:sum({ dim = { 1 }, keepdim = true }). Errors are tables with code, name and message.

local ffi = require("ffi")
local core = require("tenfold.convert")
local tensor = require("tenfold.tensor")
local values = require("tenfold.values")
local script = require("tenfold.script")
local learning = require("tenfold.learning")
local functions = require("tenfold.functions")
local networks = require("tenfold.nn")

local C, fail = core.C, core.fail
local tenfold = {
  tensor = tensor.tensor, ops = tensor.ops, optim = learning.optim, jit = script,
  nn = networks.nn, lr_scheduler = networks.lr_scheduler, DataLoader = networks.DataLoader,
  grad = learning.grad, no_grad = learning.no_grad, enable_grad = learning.enable_grad,
  inference_mode = learning.inference_mode, detect_anomaly = learning.detect_anomaly,
  is_grad_enabled = learning.is_grad_enabled,
  autograd_function = functions.new, stream = functions.stream, train_step = script.train_step, call = values.call, tuple = values.tuple, none = values.none,
  scope = core.scope, keep = core.keep, set_pressure = core.set_pressure,
  collect = core.collect,
  double = core.double, complex_number = core.complex_number, is_tensor = core.is.tensor, Error = core.Error,
}

function tenfold.version() return ffi.string(C.tn_version()) end
function tenfold.torch_version() return ffi.string(C.tn_torch_version()) end
function tenfold.cuda_available() return C.tn_cuda_available() == 1 end

function tenfold.live_tensors() return tonumber(C.tn_live_tensors()) end
function tenfold.live_bytes() return tonumber(C.tn_live_bytes()) end
function tenfold.peak_bytes() return tonumber(C.tn_peak_bytes()) end
function tenfold.reset_peak_bytes() C.tn_reset_peak_bytes() end

function tenfold.manual_seed(seed)
  if not core.is.int(seed) then core.refuse("manual_seed: a seed is a whole number") end
  if C.tn_manual_seed(seed) ~= 0 then fail() end
end

function tenfold.set_threads(count)
  if not core.is.int(count) then core.refuse("set_threads: a number of threads is a whole number") end
  if C.tn_set_threads(count) ~= 0 then fail() end
end

-- A source of random numbers of its own, for operators that take a generator.
local Generator = { free = core.free_object }
Generator.__index = Generator
function tenfold.generator(seed, device)
  if not core.is.int(seed) then core.refuse("generator: a seed is a whole number") end
  local handle = C.tn_generator_new(core.convert.device(device or "cpu"), seed)
  return core.object(Generator, handle, C.tn_generator_free)
end

-- Write tensors by name to a safetensors file, and read one.
function tenfold.save(path, tensors)
  local names, list = {}, {}
  local function check(holds) if not holds then core.refuse("save: a path, and tensors by name") end end
  check(core.is.string(path) and type(tensors) == "table")
  for name in pairs(tensors) do
    check(core.is.string(name))
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = tensors[name] end
  check(core.is.tensors(list))
  local texts = ffi.new("const char *[?]", #names + 1)
  for i, name in ipairs(names) do texts[i - 1] = name end
  local array, n = core.convert.tensors(list)
  if C.tn_save_safetensors(path, texts, array, n) ~= 0 then fail() end
end

function tenfold.load(path)
  if not core.is.string(path) then core.refuse("load: the path is a string without zero bytes") end
  local found = C.tn_load_safetensors(path)
  if found == nil then fail() end
  return values.from(ffi.gc(found, C.tn_value_free))
end

-- A loss by its name, such as "cross_entropy", averaged.
function tenfold.loss(name, input, target)
  if type(name) ~= "string" or not core.is.tensor(input) or not core.is.tensor(target) then
    core.refuse("loss: a name, the input and the target")
  end
  local made = C.tn_loss(name, input.handle, target.handle)
  if made == nil then fail() end
  return core.own(made)
end

-- Every operator is a function here too, unless something above has its name.
return setmetatable(tenfold, { __index = tensor.ops })
