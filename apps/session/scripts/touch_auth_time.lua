-- include: lib.lua
-- Notes that the user was proved again. Input: user_id, session_id, auth_time (seconds; 0: no proof counts), amr (the methods
-- of this proof), ua_family and ip_prefix of the client that proved it, to which the session is bound from now on, or none.
-- Returns all methods of the session, or gone.
local sess = sess_key(input.user_id, input.session_id)
local record = redis.call('HMGET', sess, 'state', 'expires_at', 'auth_time', 'amr')
if record[1] ~= 'active' or tonumber(record[2]) <= now then return 'gone' end
local methods = record[4] or 'pwd'
for _, method in ipairs(input.amr) do
  if not string.find(' ' .. methods .. ' ', ' ' .. method .. ' ', 1, true) then methods = methods .. ' ' .. method end
end
-- A proof may arrive after a newer one.
local newest = math.max(input.auth_time, tonumber(record[3]))
redis.call('HSET', sess, 'auth_time', text(input.auth_time == 0 and 0 or newest), 'amr', methods)
for _, name in ipairs({ 'ua_family', 'ip_prefix' }) do
  if input[name] then redis.call('HSET', sess, name, input[name]) end
end
return methods
