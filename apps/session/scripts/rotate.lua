-- include: rotate.lib.lua
-- The one compare-and-swap of a refresh. Input: user_id, session_id, presented (hash of the token that came), the next
-- token (hash, succ_jti, succ_iat, succ_kid) or none, retry_key_hash, ua_hash, window_s.
-- A presented token that is neither current nor a proven retry ends the session, at any age.
local sess = sess_key(input.user_id, input.session_id)
local record = redis.call('HMGET', sess, 'state', 'refresh_token_hash', 'prev_hash', 'expires_at', 'last_used_at')
if record[1] ~= 'active' then return { 'gone' } end
if is_over(record[4], record[5]) then
  drop(input.user_id, input.session_id)
  return { 'expired' }
end
if input.presented == record[2] then
  if not input.hash then return { 'current' } end
  advance(sess, record[2])
  return { 'rotated' }
end
if input.presented == record[3] and is_retry(redis.call('HMGET', sess, unpack(PROOF))) then
  return successor(sess)
end
return { 'replay', revoke(input.user_id, input.session_id, 'replay') }
