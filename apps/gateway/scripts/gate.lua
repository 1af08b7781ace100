-- include: ../../../db/redis/gcra.lua
-- All that Redis knows about one API request, in one trip. KEYS: bucket, deny key, revoked-before key. ARGV: interval
-- (us) and burst of the bucket, iat of the token, user id, key of the session. A session of another user, or one that
-- does not exist, is denied. Returns {'ok', 0}, {'denied', 0} or {'limited', ms}.
-- The key of the session is an argument: a script needs write access to all of KEYS, and the gateway may only read it.
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('GET', ARGV[5]) ~= ARGV[4] then return { 'denied', 0 } end
local before = redis.call('GET', KEYS[3])
if before and tonumber(ARGV[3]) < tonumber(before) then return { 'denied', 0 } end
local now = now_us()
local wait = gcra_wait(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), now)
if wait > 0 then return { 'limited', wait } end
gcra_take(KEYS[1], tonumber(ARGV[1]), now)
return { 'ok', 0 }
