-- Whether Redis denies an access token. A session of another user, or one that does not exist, is denied.
-- Keys: the denial, the user's revoked-before, the session, its ended tokens. Then of the token: its user, iat, auth_time, jti.
local function denied(denial, revoked_before, session, ended, user, iat, auth_time, jti)
  if redis.call('EXISTS', denial) == 1 or redis.call('GET', session) ~= user then return true end
  local before = redis.call('GET', revoked_before)
  if before and tonumber(iat) < tonumber(before) then return true end
  local old = redis.call('HMGET', ended, 'before', jti)
  -- An auth_time of 0 may be newer: the session has moved since its proof (SESSION__BINDING__ACTION=step_up).
  local older = old[1] and tonumber(auth_time) < tonumber(old[1]) and (auth_time ~= '0' or tonumber(iat) <= tonumber(old[1]))
  return old[2] or older
end
