-- include: lib.lua
-- Ends all sessions of a user but keep_session_id and, with password_version, those that proved that password or a newer
-- one: the message may come late, when the user has signed in with the new password already. A login that is still under
-- way with an older one finds the floor set here (activate_session). With no session named to keep, tokens issued before
-- now (or before the oldest session that stays) are refused as well, also of sessions that this store does not know.
-- Input: user_id, keep_session_id, password_version, reason, actor, request_id. Returns the events.
local events = {}
local before = now
for _, id in ipairs(redis.call('ZRANGE', usess_key(input.user_id), 0, -1)) do
  if id ~= input.keep_session_id then
    local record = redis.call('HMGET', sess_key(input.user_id, id), 'state', 'password_version', 'created_at')
    local proved = tonumber(record[2] or '0')
    if record[1] and input.password_version and proved >= input.password_version then
      before = math.min(before, tonumber(record[3]))
    elseif record[1] == 'active' then
      events[#events + 1] = revoke(input.user_id, id, input.reason)
    else
      drop(input.user_id, id)
    end
  end
end
if input.password_version then raise(floor_key(input.user_id), input.password_version) end
if not input.keep_session_id then
  raise(P .. 'ub:{' .. input.user_id .. '}', math.floor(before / 1000000))
end
return events
