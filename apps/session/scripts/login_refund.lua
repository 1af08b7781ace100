-- include: lockout.lib.lua
-- Takes back a charge whose attempt could not be checked. Input also: bucket, close_at, and the two locks of login_begin.
local key = input.bucket == 'device' and device_key or name_key
local n = tonumber(redis.call('HGET', key, 'n') or '0') - 1
if n <= 0 then
  redis.call('DEL', key)
  return 'ok'
end
redis.call('HSET', key, 'n', n)
if input.bucket == 'name' and redis.call('HGET', key, 'locked_until') == input.lock_now then
  redis.call('HSET', key, 'locked_until', input.lock_before)
end
if n < input.close_at then redis.call('EXPIRE', key, FORGET_S) end
return 'ok'
