-- include: denied.lua
-- Which of several access tokens Redis denies. ARGV: for each token the eight values that `denied` takes. Returns 1 (denied)
-- or 0 for each.
local ended = {}
for at = 1, #ARGV, 8 do
  ended[#ended + 1] = denied(unpack(ARGV, at, at + 7)) and 1 or 0
end
return ended
