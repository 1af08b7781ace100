-- include: lib.lua
-- Ends the access tokens of a session whose person was proved again (ASVS 7.2.4): all of an older proof, and the one that
-- asked. Input: user_id, session_id, before (auth_time in seconds; older ones end), jti or none.
local key = P .. 'old:{' .. input.user_id .. '}:' .. input.session_id
redis.call('HSET', key, 'before', math.max(tonumber(redis.call('HGET', key, 'before') or '0'), input.before))
if input.jti then redis.call('HSET', key, input.jti, '1') end
redis.call('EXPIRE', key, DENY_S)
return 'ok'
