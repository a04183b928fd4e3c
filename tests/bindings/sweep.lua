-- Makes the calls of a sweep: `luajit sweep.lua FOLDER`, with FOLDER/cases and FOLDER/inputs.safetensors.

local tn = require("tenfold")
local folder = arg[1]
local inputs = tn.load(folder .. "/inputs.safetensors")
local results, failed = {}, 0

-- What the cases are written in: a fresh copy of an input, and a number that is a double.
local words = { t = function(name) return inputs[name]:clone() end, d = tn.double, none = false }

local function keep(number, ...)
  local place = 0
  local function put(value)
    if type(value) == "table" then
      for _, each in ipairs(value) do put(each) end
    else
      if type(value) == "boolean" then value = tn.tensor(value) end
      results[number .. "." .. place] = value:detach():contiguous():clone()
      place = place + 1
    end
  end
  for i = 1, select("#", ...) do put((select(i, ...))) end
end

for line in io.lines(folder .. "/cases") do
  local case = setfenv(assert(loadstring("return " .. line)), words)()
  tn.manual_seed(0)
  local succeeded, message = pcall(function()
    keep(case.number, tn.ops[case.op](unpack(case, 1, case.n)))
  end)
  if not succeeded then
    failed = failed + 1
    print(case.number .. " " .. case.op .. ": " .. tostring(message))
  end
end

tn.save(folder .. "/results.safetensors", results)
results, inputs = nil, nil
tn.collect()
print(failed .. " failed, " .. tn.live_tensors() .. " tensors left")
