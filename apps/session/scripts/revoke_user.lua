-- include: lib.lua
-- Ends all sessions of a user but keep_session_id. With none kept, tokens issued before now are refused as well, also of
-- sessions that this store does not know. Input: user_id, keep_session_id, reason, actor, request_id. Returns the events.
local events = {}
for _, id in ipairs(redis.call('ZRANGE', usess_key(input.user_id), 0, -1)) do
  if id ~= input.keep_session_id then
    local state = redis.call('HGET', sess_key(input.user_id, id), 'state')
    if state == 'active' then
      events[#events + 1] = revoke(input.user_id, id, input.reason)
    else
      drop(input.user_id, id)
    end
  end
end
if not input.keep_session_id then
  redis.call('SET', P .. 'ub:{' .. input.user_id .. '}', text(math.floor(now / 1000000)), 'EX', DENY_S)
end
return events
