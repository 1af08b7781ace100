-- include: lib.lua
-- Ends the access tokens of a session whose person was proved again (ASVS 7.2.4): all of an older proof, and the one that
-- asked. Input: user_id, session_id, before (auth_time in seconds; older ones end), jti or none.
local key = end_older(input.user_id, input.session_id, input.before)
if input.jti then redis.call('HSET', key, input.jti, '1') end
return 'ok'
