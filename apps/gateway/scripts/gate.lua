-- include: ../../../db/redis/gcra.lua
-- include: denied.lua
-- All that Redis knows about one API request, in one trip. KEYS: bucket, deny key, revoked-before key. ARGV: interval
-- (us) and burst of the bucket, key of the session, key of its ended tokens, then user id, iat, auth_time and jti of the
-- token. Returns {'ok', 0}, {'denied', 0} or {'limited', ms}.
-- Both keys of the session are arguments: a script needs write access to all of KEYS, and the gateway may only read them.
if denied(KEYS[2], KEYS[3], unpack(ARGV, 3)) then return { 'denied', 0 } end
local now = now_us()
local wait = gcra_wait(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), now)
if wait > 0 then return { 'limited', wait } end
gcra_take(KEYS[1], tonumber(ARGV[1]), now)
return { 'ok', 0 }
