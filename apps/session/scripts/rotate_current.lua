-- include: rotate.lib.lua
-- A new refresh token for a session whose user just changed the password, whatever token it had.
-- Input as rotate, without a presented token, and password_version. Returns rotated, retry + successor (same key again),
-- current (it has its tokens since this change) or gone.
local sess = sess_key(input.user_id, input.session_id)
local record = redis.call('HMGET', sess, 'state', 'refresh_token_hash', 'expires_at', 'password_version')
if record[1] ~= 'active' or tonumber(record[3]) <= now then return { 'gone' } end
if is_retry(redis.call('HMGET', sess, unpack(PROOF))) then return successor(sess) end
if not input.hash or tonumber(record[4] or '0') >= input.password_version then return { 'current' } end
advance(sess, record[2])
redis.call('HSET', sess, 'password_version', input.password_version)
return { 'rotated' }
