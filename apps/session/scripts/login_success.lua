-- include: lockout.lib.lua
-- Forgets the failures of the bucket that was charged: a known device never clears the name's. Input also: bucket.
redis.call('DEL', input.bucket == 'device' and device_key or name_key)
return 'ok'
