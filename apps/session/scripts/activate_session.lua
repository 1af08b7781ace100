-- include: lib.lua
-- The first refresh token of a pending session. Input: user_id, session_id, hash, succ_jti, succ_iat, succ_kid.
-- Returns 'ok', or 'gone' when the session was revoked or dropped meanwhile, proved a password that was replaced since or
-- a sign-in at a provider that has ended there, or was begun by an earlier request before all its person's sessions ended.
local sess = sess_key(input.user_id, input.session_id)
local record = redis.call('HMGET', sess, 'state', 'password_version', 'indexes', 'proved_at', 'begun_at')
if record[1] ~= 'pending' then return 'gone' end
local old = record[2] and tonumber(record[2]) < tonumber(redis.call('GET', floor_key(input.user_id)) or '0')
for _, index in ipairs(cjson.decode(record[3] or '[]')) do
  local ended = redis.call('GET', P .. 'oend:' .. index)
  old = old or (ended and tonumber(record[4] or '0') <= tonumber(ended))
end
local function void_until(by) return tonumber(redis.call('GET', ended_key(input.user_id, by)) or '0') end
local void = math.max(void_until(''), record[2] and 0 or void_until(':password'))
if old or (record[5] and tonumber(record[5]) <= void) then
  drop(input.user_id, input.session_id)
  return 'gone'
end
redis.call('HSET', sess, 'state', 'active', 'refresh_token_hash', input.hash, 'gen', '1',
  'succ_jti', input.succ_jti, 'succ_iat', input.succ_iat, 'succ_kid', input.succ_kid)
return 'ok'
