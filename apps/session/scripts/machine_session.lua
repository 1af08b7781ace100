-- include: lib.lua
-- The record under which a machine's tokens live: one per credential, as long as its newest token. Input: session_id (the
-- credential), user_id, username, ttl_s, asked_ms, fields of the client. Returns 'ok', or 'denied' if it was revoked since
-- the credential was proved. One that was proved after its end counts again; then only the tokens from before stay denied.
local denied = redis.call('PTTL', deny_key(input.user_id, input.session_id))
if denied >= 0 then
  local ended = now / 1000 - (DENY_S * 1000 - denied)
  if ended >= input.asked_ms then return 'denied' end
  end_older(input.user_id, input.session_id, math.floor(ended / 1000) + 1)
  redis.call('DEL', deny_key(input.user_id, input.session_id))
end
local sess = sess_key(input.user_id, input.session_id)
local usess = usess_key(input.user_id)
redis.call('HSETNX', sess, 'created_at', text(now))
redis.call('HSET', sess, 'session_id', input.session_id, 'user_id', input.user_id, 'username', input.username,
  'mode', 'machine', 'state', 'active', 'last_used_at', text(now), 'auth_time', text(math.floor(now / 1000000)),
  'expires_at', text(now + input.ttl_s * 1000000), 'user_agent', input.user_agent or '', 'ip_address', input.ip_address or '')
redis.call('EXPIRE', sess, input.ttl_s)
redis.call('SET', sid_key(input.session_id), input.user_id, 'EX', input.ttl_s)
redis.call('ZREMRANGEBYSCORE', usess, '-inf', now - input.ttl_s * 1000000)
redis.call('ZADD', usess, text(now), input.session_id)
redis.call('EXPIRE', usess, input.ttl_s)
return 'ok'
