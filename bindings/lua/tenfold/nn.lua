-- Neural networks: modules with parameters and state, made of the layers that layers.lua describes, and what trains them:
-- learning rates that change, and samples in batches.

local core = require("tenfold.convert")
local tensor = require("tenfold.tensor")
local learning = require("tenfold.learning")
local layers = require("tenfold.layers")

local is, ops = core.is, tensor.ops
local REDUCTIONS = { none = 0, mean = 1, sum = 2 }
local nn, networks = {}, {}

-- ---- modules --------------------------------------------------------------------------------------------

-- Something that is called with tensors, and whose own tensors and modules are found by their names.
local Module = {}
Module.__index = Module
nn.Module = Module

local is_module

local function new_module(kind, fields)
  local self = fields or {}
  self.training, self.buffer_names = true, {}
  return setmetatable(self, kind)
end

-- A kind of module: `init(self, ...)` fills it, `forward(self, ...)` is what a call does.
function nn.module(methods)
  local kind = setmetatable({}, { __index = Module })
  for name, method in pairs(methods) do kind[name] = method end
  kind.__index, kind.__call, kind.is_module = kind, function(self, ...) return self:forward(...) end, true
  return function(...)
    local self = new_module(kind)
    if kind.init then kind.init(self, ...) end
    return self
  end
end

function is_module(x) return type(x) == "table" and getmetatable(x) ~= nil and getmetatable(x).is_module == true end

-- Names in order: numbers as numbers, then words.
local function names_of(self)
  local found = {}
  for name, part in pairs(self) do
    if is_module(part) or is.tensor(part) then found[#found + 1] = name end
  end
  table.sort(found, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == "number"
  end)
  return found
end

local function visit(self, prefix, fn)
  for _, name in ipairs(names_of(self)) do
    local part, shown = self[name], prefix .. (type(name) == "number" and name - 1 or name)
    if is_module(part) then visit(part, shown .. ".", fn) else fn(shown, part, self.buffer_names[name]) end
  end
end

-- Say that a tensor is part of the state, and does not learn.
function Module:register_buffer(name, value)
  self[name], self.buffer_names[name] = value, true
end

function Module:named_parameters()
  local found, seen = {}, {}
  visit(self, "", function(name, part, buffer)
    if not buffer and part.requires_grad and not seen[part] then found[name], seen[part] = part, true end
  end)
  return found
end

function Module:parameters()
  local found, seen = {}, {}
  visit(self, "", function(_, part, buffer)
    if not buffer and part.requires_grad and not seen[part] then
      found[#found + 1], seen[part] = part, true
    end
  end)
  return found
end

-- All parameters and buffers by name, which share their memory with the module's.
function Module:state_dict()
  local found = {}
  visit(self, "", function(name, part, buffer) if buffer or part.requires_grad then found[name] = part end end)
  return found
end

function Module:load_state_dict(state)
  if type(state) ~= "table" then core.refuse("load_state_dict: a state is a table of tensors by name, not a %s", type(state)) end
  local own = self:state_dict()
  for name in pairs(own) do if state[name] == nil then core.refuse("the state has no %s, which the module has", name) end end
  for name in pairs(state) do if own[name] == nil then core.refuse("the module has no %s, which the state has", name) end end
  learning.no_grad(function() for name, part in pairs(own) do part:copy_(state[name]) end end)
  return self
end

function Module:train(mode)
  self.training = mode ~= false
  for _, name in ipairs(names_of(self)) do
    if is_module(self[name]) then self[name]:train(mode) end
  end
  return self
end

function Module:eval() return self:train(false) end

-- ---- layers that are described --------------------------------------------------------------------------

-- What a size or an argument stands for: an option, a quotient, a number so many times.
local function sizes_of(text, options, into)
  local above, below = text:match("^([%w_]+)/([%w_]+)$")
  if above then
    into[#into + 1] = options[above] / options[below]
    return into
  end
  local name, count = text:match("^([%w_]+)%*(%d*)$")
  local value = options[name or text]
  if type(value) == "table" then
    for _, each in ipairs(value) do into[#into + 1] = each end
  else
    for _ = 1, tonumber(count) or 1 do into[#into + 1] = value end
  end
  return into
end

local function started(how, sizes, bound)
  if how == "uniform" then return (ops.rand(sizes) * (2 * bound)):sub_(bound) end
  local makers = { normal = "randn", ones = "ones", zeros = "zeros" }
  return ops[makers[how]](sizes)
end

-- Options by position or, last, in a table by name.
local function options_of(name, row, given)
  local named, last, options = {}, given[#given], {}
  if type(last) == "table" and #last == 0 then
    named, given[#given] = last, nil
  end
  for place, option in ipairs(row.options) do
    local value = given[place]
    if value == nil then value = named[option.name] end
    if value == nil then value = option.default end
    if value == nil and option.required then core.refuse("%s needs %s", name, option.name) end
    options[option.name] = value
    named[option.name] = nil
  end
  local unknown = next(named)
  if unknown ~= nil or #given > #row.options then core.refuse("%s has no option %s", name, tostring(unknown or #given)) end
  return options
end

local function layer(name, row)
  local function argument(self, source)
    if type(source) ~= "string" then return source end
    if source == "training" then return self.training end
    if source == "reduction" then
      return REDUCTIONS[self.options.reduction] or core.refuse("reduction is 'none', 'mean' or 'sum'")
    end
    if row.parameters[source] or row.buffers[source] then return self[source] end
    if not source:find("*", 1, true) then return self.options[source] end
    local found = sizes_of(source, self.options, {})
    if #found > 0 then return found end
  end
  return nn.module({
    init = function(self, ...)
      local options = options_of(name, row, { ... })
      rawset(self, "options", options)
      local function sizes(texts)
        local found = {}
        for _, text in ipairs(texts) do sizes_of(text, options, found) end
        return found
      end
      local inputs = 1
      for place, size in ipairs(row.parameters.weight and sizes(row.parameters.weight) or {}) do
        if not is.int(size) then core.refuse("%s: %s is no size", name, tostring(size)) end
        if place > 1 then inputs = inputs * size end
      end
      local bound = inputs > 0 and 1 / math.sqrt(inputs) or 0
      for part, texts in pairs(row.parameters) do
        if options[part] ~= false then self[part] = started(row.start[part], sizes(texts), bound):requires_grad_() end
      end
      for part, texts in pairs(row.buffers) do self:register_buffer(part, started(row.start[part], sizes(texts))) end
    end,
    forward = function(self, ...)
      local named = {}
      for place, input in ipairs(row.inputs) do
        named[input] = select(place, ...)
        if not is.tensor(named[input]) then core.refuse("%s is called with %d tensors", name, #row.inputs) end
      end
      for key, source in pairs(row.arguments) do named[key] = argument(self, source) end
      return ops[row.operator](named)
    end,
  })
end

for name, row in pairs(layers) do nn[name] = layer(name, row) end

-- Modules one after the other; their names count from 0, as PyTorch's do.
nn.Sequential = nn.module({
  init = function(self, ...)
    for place, part in ipairs({ ... }) do
      if not is_module(part) then core.refuse("Sequential takes modules") end
      self[place] = part
    end
  end,
  forward = function(self, input)
    for _, part in ipairs(self) do input = part(input) end
    return input
  end,
})

-- ---- training -------------------------------------------------------------------------------------------

local Scheduler = {}
Scheduler.__index = Scheduler

-- A learning rate that `rate` gives for each step, from that at the start.
local function scheduler(optimizer, rate)
  if type(optimizer) ~= "table" or type(optimizer.get) ~= "function" then core.refuse("a scheduler takes an optimizer first") end
  local made = setmetatable({ optimizer = optimizer, rate = rate, base = optimizer:get("lr"), last = -1 }, Scheduler)
  made:step()
  return made
end

function Scheduler:step()
  self.last = self.last + 1
  self.optimizer:set("lr", self.rate(self.last, self.base))
end

function Scheduler:get_last_lr() return self.optimizer:get("lr") end

local function positive(option, value)
  if type(value) ~= "number" or not (value > 0) then core.refuse("%s of a scheduler is a number above 0, not %s", option, tostring(value)) end
  return value
end

networks.lr_scheduler = {
  LambdaLR = function(optimizer, factor)
    if type(factor) ~= "function" then core.refuse("LambdaLR takes a function of the step, not %s", type(factor)) end
    return scheduler(optimizer, function(step, base) return base * factor(step) end)
  end,
  StepLR = function(optimizer, size, gamma)
    size, gamma = positive("step_size", size), positive("gamma", gamma or 0.1)
    return scheduler(optimizer, function(step, base) return base * gamma ^ math.floor(step / size) end)
  end,
  ExponentialLR = function(optimizer, gamma)
    gamma = positive("gamma", gamma)
    return scheduler(optimizer, function(step, base) return base * gamma ^ step end)
  end,
  CosineAnnealingLR = function(optimizer, most, least)
    most, least = positive("T_max", most), least or 0
    if type(least) ~= "number" then core.refuse("eta_min of a scheduler is a number, not %s", tostring(least)) end
    return scheduler(optimizer, function(step, base) return least + (base - least) * (1 + math.cos(math.pi * step / most)) / 2 end)
  end,
}

-- Tensors of one length in batches of their first dimension: for x, y in tn.DataLoader({ xs, ys }, { batch_size = 32 }) do.
-- Options: batch_size, shuffle, drop_last.
function networks.DataLoader(tensors, options)
  options = options or {}
  if not is.tensors(tensors) or #tensors == 0 then core.refuse("DataLoader takes a table of tensors") end
  local count, size = tensors[1].shape[1], options.batch_size or 1
  if type(size) ~= "number" or not (size >= 1) or size % 1 ~= 0 then
    core.refuse("a batch has one sample or more, not %s", tostring(size))
  end
  for _, each in ipairs(tensors) do
    if each.shape[1] ~= count then core.refuse("the tensors of a loader have one length") end
  end
  local order, first = options.shuffle and ops.randperm(count) or nil, 0
  return function()
    local taken = math.min(size, count - first)
    if taken <= 0 or (options.drop_last and taken < size) then return nil end
    local batch = {}
    for i, each in ipairs(tensors) do
      batch[i] = order and each:index_select(0, order:narrow(0, first, taken)) or each:narrow(0, first, taken)
    end
    first = first + taken
    return unpack(batch)
  end
end

networks.nn = nn
return networks
