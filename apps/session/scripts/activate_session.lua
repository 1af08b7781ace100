-- include: lib.lua
-- The first refresh token of a pending session. Input: user_id, session_id, hash, succ_jti, succ_iat, succ_kid.
-- Returns 'ok', or 'gone' when the session was revoked or dropped meanwhile.
local sess = sess_key(input.user_id, input.session_id)
if redis.call('HGET', sess, 'state') ~= 'pending' then return 'gone' end
redis.call('HSET', sess, 'state', 'active', 'refresh_token_hash', input.hash, 'gen', '1',
  'succ_jti', input.succ_jti, 'succ_iat', input.succ_iat, 'succ_kid', input.succ_kid)
return 'ok'
