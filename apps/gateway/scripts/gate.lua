-- include: ../../../db/scripts/gcra.lua
-- All that Redis knows about one API request, in one trip. KEYS: bucket, deny key, revoked-before key, key of the
-- session. ARGV: interval (us) and burst of the bucket, iat of the token, user id. A session that is not this user's, or
-- not there, is denied. Returns {'ok', 0}, {'denied', 0} or {'limited', ms}.
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('GET', KEYS[4]) ~= ARGV[4] then return { 'denied', 0 } end
local before = redis.call('GET', KEYS[3])
if before and tonumber(ARGV[3]) < tonumber(before) then return { 'denied', 0 } end
local now = now_us()
local wait = gcra_wait(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), now)
if wait > 0 then return { 'limited', wait } end
gcra_take(KEYS[1], tonumber(ARGV[1]), now)
return { 'ok', 0 }
