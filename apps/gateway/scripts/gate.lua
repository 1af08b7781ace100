-- include: ../../../db/redis/gcra.lua
-- All that Redis knows about one API request, in one trip. KEYS: bucket, deny key, revoked-before key. ARGV: interval
-- (us) and burst of the bucket, iat of the token, user id, key of the session, key of its ended tokens, auth_time and jti
-- of the token. A session of another user, or one that does not exist, is denied. Returns {'ok', 0}, {'denied', 0} or {'limited', ms}.
-- Both keys of the session are arguments: a script needs write access to all of KEYS, and the gateway may only read them.
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('GET', ARGV[5]) ~= ARGV[4] then return { 'denied', 0 } end
local before = redis.call('GET', KEYS[3])
if before and tonumber(ARGV[3]) < tonumber(before) then return { 'denied', 0 } end
local old = redis.call('HMGET', ARGV[6], 'before', ARGV[8])
-- An auth_time of 0 may be newer: the session has moved since its proof (SESSION__BINDING__ACTION=step_up).
local older = old[1] and tonumber(ARGV[7]) < tonumber(old[1]) and (ARGV[7] ~= '0' or tonumber(ARGV[3]) <= tonumber(old[1]))
if old[2] or older then return { 'denied', 0 } end
local now = now_us()
local wait = gcra_wait(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), now)
if wait > 0 then return { 'limited', wait } end
gcra_take(KEYS[1], tonumber(ARGV[1]), now)
return { 'ok', 0 }
