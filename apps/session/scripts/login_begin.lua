-- include: lockout.lib.lua
-- Charges an attempt before the password is checked, so that parallel guesses cannot outrun the lock.
-- Input also: free, max_s, close_at. Returns {'allowed', bucket, lock before, lock now, failures} or {'locked', ms}; 'closed'
-- instead of the ms if only an administrator opens the name again.
if device_key and tonumber(redis.call('HGET', device_key, 'n') or '0') < DEVICE_FAILURES then
  local failed = redis.call('HINCRBY', device_key, 'n', 1)
  redis.call('EXPIRE', device_key, FORGET_S)
  return { 'allowed', 'device', '0', '0', failed }
end
local state = redis.call('HMGET', name_key, 'n', 'locked_until')
local n, locked_until = tonumber(state[1] or '0'), tonumber(state[2] or '0')
if n >= input.close_at then return { 'locked', 'closed' } end
if locked_until > now then return { 'locked', math.ceil((locked_until - now) / 1000) } end
n = n + 1
local lock = n > input.free and now + math.min(2 ^ (n - input.free), input.max_s) * 1000000 or 0
redis.call('HSET', name_key, 'n', n, 'locked_until', text(lock))
if n >= input.close_at then redis.call('PERSIST', name_key) else redis.call('EXPIRE', name_key, FORGET_S) end
return { 'allowed', 'name', text(locked_until), text(lock), n }
