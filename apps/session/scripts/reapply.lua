-- include: lib.lua
-- Ends again what was ended: a Redis that lost its last writes, or an older copy, must revive nothing.
-- Input: rows of {user_id, session_id, deny}; done = true with the last of them. Returns how many had come back.
local revived = 0
for _, row in ipairs(input.rows) do
  revived = revived + redis.call('EXISTS', sess_key(row.user_id, row.session_id))
  drop(row.user_id, row.session_id)
  if row.deny then redis.call('SET', deny_key(row.user_id, row.session_id), 'reapplied', 'EX', DENY_S) end
end
if input.done then redis.call('SET', P .. 'auth:epoch', input.epoch, 'NX') end
return revived
