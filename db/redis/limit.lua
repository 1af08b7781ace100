-- include: gcra.lua
-- Charges all buckets or none. KEYS: a block, then the buckets. ARGV: seconds to block when a bucket is empty
-- (0 = no block), then interval (us) and burst of each bucket. Returns {'ok', 0} or {'limited', ms}.
local blocked = redis.call('PTTL', KEYS[1])
if blocked > 0 then return {'limited', blocked} end
local now = now_us()
local wait = 0
for i = 2, #KEYS do
  local w = gcra_wait(KEYS[i], tonumber(ARGV[2 * i - 2]), tonumber(ARGV[2 * i - 1]), now)
  if w > wait then wait = w end
end
if wait > 0 then
  local block = tonumber(ARGV[1])
  if block > 0 then
    redis.call('SET', KEYS[1], '1', 'EX', block)
    return {'limited', block * 1000}
  end
  return {'limited', wait}
end
for i = 2, #KEYS do
  gcra_take(KEYS[i], tonumber(ARGV[2 * i - 2]), now)
end
return {'ok', 0}
