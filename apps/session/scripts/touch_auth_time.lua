-- include: lib.lua
-- Notes that the user proved the password again. Input: user_id, session_id, auth_time (seconds). Returns ok or gone.
local sess = sess_key(input.user_id, input.session_id)
if redis.call('HGET', sess, 'state') ~= 'active' then return 'gone' end
redis.call('HSET', sess, 'auth_time', text(input.auth_time))
return 'ok'
