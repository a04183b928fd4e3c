-- Layers with given weights and inputs: luajit networks.lua GIVEN RESULTS, after LAYERS and LOSSES were written in front.
local tn = require("tenfold")
local given, found = tn.load(arg[1]), {}
for name, options in pairs(LAYERS) do
  local state = {}
  for key, tensor in pairs(given) do
    local part = key:match("^" .. name .. "%.state%.(.*)$")
    if part then state[part] = tensor end
  end
  found[name] = tn.nn[name](unpack(options)):load_state_dict(state)(given[name .. ".input"]):detach():contiguous()
end
for _, name in ipairs(LOSSES) do found[name] = tn.nn[name]()(given[name .. ".input"], given[name .. ".target"]):reshape({ 1 }) end
tn.save(arg[2], found)
