/** The public API as types; made from openapi/public.json by `npm run openapi`. */
export interface paths {
    "/v1/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in or renew tokens
         * @description Signs in (username and password) or renews the tokens (refresh token), by response mode.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in
         * @description Signs in.
         */
        post: operations["startSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew the tokens of a session
         * @description Renews the tokens.
         */
        post: operations["refreshSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign out
         * @description Ends the token's session. It may be repeated while the token is valid.
         */
        post: operations["endSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get an access token for a machine
         * @description Exchanges an API key, a signed assertion or a trusted CI token for a short-lived access token. The key may also be the password of HTTP Basic, with the name of the machine.
         */
        post: operations["createMachineToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/token/csrf": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the CSRF token
         * @description Returns the CSRF token of the cookie session, for a new tab.
         */
        get: operations["getCsrfToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/token/reauth": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm who you are
         * @description Proves a password, a passkey or a code again and returns an access token with a fresh auth_time.
         */
        post: operations["confirmPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/token/passkey-options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a challenge for a passkey
         * @description Returns a challenge that one passkey may answer once: to sign in, to confirm, or to be added.
         */
        post: operations["createPasskeyChallenge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/device": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin the sign-in of a device
         * @description The codes of RFC 8628: the device polls POST /v1/token, the person approves at /device.
         */
        post: operations["createDeviceAuthorization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/device/find": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Look up the code of a device
         * @description Returns which device asks, from where and since when.
         */
        post: operations["findDeviceRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/device/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve the sign-in of a device
         * @description Signs the device in as the caller, who must have signed in within the last 5 minutes.
         */
        post: operations["approveDeviceRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/device/deny": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refuse the sign-in of a device
         * @description Refuses the device.
         */
        post: operations["denyDeviceRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the identity providers
         * @description The providers that the sign-in page offers, and whether it takes passwords.
         */
        get: operations["listProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sso/{provider}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sign in through a provider
         * @description Redirects the browser to the provider. A native app names its redirect URI.
         */
        get: operations["startProviderSignIn"];
        put?: never;
        /**
         * Confirm or link through a provider
         * @description Begins a confirmation, or links an identity, for the signed-in person.
         */
        post: operations["startProviderProof"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sso/{provider}/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Come back from a provider
         * @description Completes a sign-in: sets the refresh and device cookies, ends the session that this browser had, and redirects to the console or the app.
         */
        get: operations["finishProviderSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sso/{provider}/backchannel-logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End sessions by a logout token
         * @description Called by the provider: ends the sessions that the logout token names.
         */
        post: operations["endProviderSessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your sessions
         * @description The sessions of the caller, newest first.
         */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/revoke-others": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End your other sessions
         * @description Ends all other sessions of the caller, who must have signed in recently.
         */
        post: operations["revokeOtherSessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End one of your sessions
         * @description Ends one of the caller’s sessions; ending the current one signs out. Ending another one takes a recent sign-in.
         */
        delete: operations["revokeSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change your password
         * @description Changes the password, ends all other sessions and gives this one new tokens.
         */
        post: operations["changePassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your passkeys
         * @description The passkeys of the caller, oldest first; at most 10.
         */
        get: operations["listPasskeys"];
        put?: never;
        /**
         * Add a passkey
         * @description Registers a passkey for the caller, who must have signed in within the last 5 minutes.
         */
        post: operations["addPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/passkeys/{passkey_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a passkey
         * @description Removes a passkey of the caller, who must have signed in within the last 5 minutes.
         */
        delete: operations["removePasskey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read whether you have an authenticator app
         * @description Returns whether the caller has an authenticator app, since when, and when it was last used.
         */
        get: operations["getTotp"];
        /**
         * Set up an authenticator app
         * @description Sets up the app that shows this first code, in place of any earlier one. The caller must have signed in within the last 5 minutes.
         */
        put: operations["setTotp"];
        post?: never;
        /**
         * Remove your authenticator app
         * @description Removes the authenticator app of the caller, who must have signed in within the last 5 minutes.
         */
        delete: operations["removeTotp"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/totp/setup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin to set up an authenticator app
         * @description Makes a new secret for the caller, who must have signed in within the last 5 minutes. No app is set up until its first code is sent.
         */
        post: operations["beginTotp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your identities at providers
         * @description Lists the provider identities by which the caller may sign in.
         */
        get: operations["listIdentities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/identities/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Unlink your identity at a provider
         * @description Unlinks an identity and ends all other sessions. It takes a sign-in within the last 5 minutes, and another way in.
         */
        delete: operations["unlinkIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the identities of a user
         * @description Lists the provider identities by which a user may sign in.
         */
        get: operations["listUserIdentities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/identities/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Unlink an identity of a user
         * @description Unlinks an identity, takes the rights that it gave, and ends all sessions of the user.
         */
        delete: operations["unlinkUserIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/unlock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Unlock a user
         * @description Clears the failed logins of a user.
         */
        post: operations["unlockUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions of a user
         * @description The sessions of a user, newest first.
         */
        get: operations["listUserSessions"];
        put?: never;
        post?: never;
        /**
         * End all sessions of a user
         * @description Ends all sessions of a user.
         */
        delete: operations["revokeUserSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End one session of a user
         * @description Ends one session of a user.
         */
        delete: operations["revokeUserSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/auth-events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sign-ins, lockouts and ended sessions
         * @description Lists sign-ins, lockouts, refusals and ended sessions, newest first.
         */
        get: operations["listAuthEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/provider-trials/{trial}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a test sign-in
         * @description What the platform would make of a person who signed in with `purpose=trial` in the last 10 minutes. No account is made, linked or signed in.
         */
        get: operations["getProviderTrial"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the current user
         * @description Returns the caller with roles, groups and grants.
         */
        get: operations["getCurrentUser"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/preferences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read your display preferences
         * @description Returns the caller's console settings; empty until they are first set.
         */
        get: operations["getPreferences"];
        /**
         * Set your display preferences
         * @description Replaces all of the caller's preferences. If two devices write at once, the later write wins.
         */
        put: operations["setPreferences"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/views": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your views
         * @description Lists the caller's saved searches by name, at most 50, then at most 200 that members of the caller's groups share with them.
         */
        get: operations["listViews"];
        put?: never;
        /**
         * Save a view
         * @description Saves the filters of a list under a name that is unique among the caller's views, alone or shared with one of the caller's groups.
         */
        post: operations["createView"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/me/views/{view_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a view
         * @description Deletes one of the caller's views.
         */
        delete: operations["deleteView"];
        options?: never;
        head?: never;
        /**
         * Change a view
         * @description Renames a view, replaces its filters or shares it with another group or none. If-Match holds the version that was read.
         */
        patch: operations["updateView"];
        trace?: never;
    };
    "/api/v1/users/enrol": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Set a password by an enrolment token
         * @description Sets the first password, or a new one, by a one-time enrolment token.
         */
        post: operations["enrolUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List users
         * @description Users by name.
         */
        get: operations["listUsers"];
        put?: never;
        /**
         * Create a user
         * @description Creates a user and a link to set the first password; 202 if another administrator must confirm it.
         */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a user
         * @description Returns one user with all current roles, groups and grants.
         */
        get: operations["getUser"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Disable a user
         * @description Disables a user and ends all sessions.
         */
        post: operations["disableUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete a user
         * @description Deletes a user for good and ends all sessions; the name is never used again.
         */
        post: operations["deleteUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enable a user
         * @description Enables a disabled user; revives no session. 202 with a change if another administrator must confirm it.
         */
        post: operations["enableUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/enrolment-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an enrolment token
         * @description Creates a one-time link to set a password; 202 if another administrator must confirm it.
         */
        post: operations["createEnrolmentToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/users/{user_id}/recovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Recover a user who lost every passkey
         * @description Ends passkeys, app, identities at providers, sessions and password, and gives a one-time link. An account of a provider loses passkeys, app and sessions, and gets no link (200). 202 if another administrator must confirm it.
         */
        post: operations["recoverUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List groups
         * @description Groups by key, with their members and who added each.
         */
        get: operations["listGroups"];
        put?: never;
        /**
         * Create a group
         * @description Creates a group.
         */
        post: operations["createGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/groups/{group_key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a group
         * @description Removes a group, its memberships and its grants.
         */
        delete: operations["deleteGroup"];
        options?: never;
        head?: never;
        /**
         * Change a group
         * @description Changes name or description of a group. If-Match holds the version that was read.
         */
        patch: operations["updateGroup"];
        trace?: never;
    };
    "/api/v1/admin/groups/{group_key}/members/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Add a member to a group
         * @description Adds a user to a group; 202 if a second administrator must confirm it.
         */
        put: operations["addGroupMember"];
        post?: never;
        /**
         * Remove a member from a group
         * @description Removes a user from a group; refused while a provider gives the membership, which ends there or by disabling the account.
         */
        delete: operations["removeGroupMember"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List grants
         * @description Grants in the order in which they were made.
         */
        get: operations["listGrants"];
        put?: never;
        /**
         * Grant a role
         * @description Gives a role to a user or a group; 202 if a second administrator must confirm it.
         */
        post: operations["createGrant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/grants/{grant_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Withdraw a grant
         * @description Withdraws a grant; refused while a provider gives it, which ends there or by disabling the account.
         */
        delete: operations["deleteGrant"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/roles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List roles
         * @description The roles and what each may do.
         */
        get: operations["listRoles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the identity providers with their settings
         * @description The providers in force: whom they let in, what their groups grant, and how many people they have.
         */
        get: operations["listProviderSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List changes that need two administrators
         * @description The newest first, with the digest to confirm, and whether two administrators check each other.
         */
        get: operations["listChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/changes/{change_id}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm a change
         * @description Makes a change that another administrator requested, if its digest is the one that was reviewed.
         */
        post: operations["confirmChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/changes/{change_id}/half": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get your half of an enrolment link
         * @description Returns one half of the link that a confirmed change makes: one for its requester, one for its confirmer.
         */
        post: operations["createEnrolmentHalf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/changes/{change_id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a change
         * @description Ends a change that waits for a second administrator.
         */
        post: operations["rejectChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/changes/{change_id}/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw a change
         * @description Ends a change that the caller requested.
         */
        post: operations["withdrawChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/machines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List machines
         * @description Machines by name, with owners and credentials.
         */
        get: operations["listMachines"];
        put?: never;
        /**
         * Create a machine
         * @description Creates an account without a password, rights or credentials.
         */
        post: operations["createMachine"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/machines/{machine_id}/owners/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Add an owner to a machine
         * @description A person who answers for the machine. A machine without an active owner gets no tokens.
         */
        put: operations["addMachineOwner"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/machines/{machine_id}/credentials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a machine a credential
         * @description An API key, a public key or a trust in CI tokens; 202 if a second administrator must confirm it.
         */
        post: operations["createMachineCredential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/machines/{machine_id}/credentials/{credential_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate an API key
         * @description Creates a second key with the same rights; the first one works until the overlap ends.
         */
        post: operations["rotateMachineKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/machines/{machine_id}/credentials/{credential_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a credential of a machine
         * @description Ends a credential and its tokens at once.
         */
        delete: operations["revokeMachineCredential"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/user-events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List changes of users, groups and grants
         * @description Lists changes of users, groups and grants, and refused attempts, newest first.
         */
        get: operations["listUserEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the public signing keys
         * @description Returns the keys that verify access and refresh tokens, including the next one. Cache them for 300 s.
         */
        get: operations["getSigningKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check that the process runs
         * @description The process is running. Orchestrators use this to decide on a restart.
         */
        get: operations["getLiveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check that the platform takes traffic
         * @description Whether this process can take traffic. The reasons are on the internal listener only.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/platform/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the health of the platform
         * @description Returns the last report of every process of the platform.
         */
        get: operations["getPlatformHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List resources
         * @description Lists resources by place, type, state, labels or a filter, in keyset pages: under sort keys that never change, a row that exists throughout is returned exactly once. Example: ?type_key=infra.host&region_id=eu1&filter=labels.env=prod
         */
        get: operations["listResources"];
        put?: never;
        /**
         * Create a resource
         * @description Writes record types, and facts with mode=record_only, at once (201). For other types it creates a planned resource and an intent (202). Example body: {"type_key":"topology.region","name":"eu1","desired_state":{"code":"eu1"}}
         */
        post: operations["createResource"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a resource
         * @description Returns one resource, never stale, with the ETag for If-Match. at and at_version return an earlier state. With fields the reply contains only those fields. Example: ?fields=name,desired_state.release
         */
        get: operations["getResource"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a resource
         * @description Applies a merge patch (RFC 7396) or JSON patch (RFC 6902) to display_name, labels, annotations, owner and desired_state, based on one version (If-Match or expected_version). desired_state of an operation type becomes an intent (202). A state has at most 256 KiB and 20 levels, and each string at most 65,536 characters as spelled in JSON. Example body: {"labels":{"env":"prod"},"expected_version":3}
         */
        patch: operations["updateResource"];
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/relationships": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the relationships of a resource
         * @description Lists open edges (with at, those of that time) to peers that the caller may see, by type, direction and peer id. Example: ?direction=out&relationship_types=depends_on
         */
        get: operations["listRelationships"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/capabilities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the capabilities of a resource
         * @description Returns the capabilities that it provides and, for each requirement, whether it is bound, satisfiable, or why not. Example: ?allow_degraded=true
         */
        get: operations["getResourceCapabilities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the health of a resource
         * @description Returns its own health with the checks behind it (expired ones no longer count), and the roll-up over its dependencies with the paths to its causes. Example: ?history_since=2026-01-31T12:00:00Z
         */
        get: operations["getResourceHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/difference": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare two times
         * @description Compares a resource and everything below it at two times: added, removed, changed and moved resources, with the fields that differ, by whom and by which operations. The same times always give the same answer. Example: ?from=2026-01-31T12:00:00Z
         */
        get: operations["getDifference"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/impact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what depends on a resource
         * @description Returns everything that would be affected if the resource failed, transitively: resources that are in it, hosted on it, depend on it, use its capabilities or have it as a member, each with a shortest path and its effect by the roll-up rules. Example: ?limit=20
         */
        get: operations["getImpact"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/operations-summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Summarize the operations of a resource
         * @description Returns how many operations touched it, by status, and the last ten. Their history is at /v1/operations/{operation_id}.
         */
        get: operations["getOperationsSummary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of a resource
         * @description Lists who changed which fields and when, by which command and operation, with which evidence, newest first. Not in the specification.
         */
        get: operations["listResourceVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search resources
         * @description Finds resources by words in their names, labels, owners, types, relations, states and annotations, best match first. Example: ?q=web eu1 prod
         */
        get: operations["searchResources"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resource-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List resource types
         * @description Lists the newest version of each type, including everything inherited from its bases. Example: ?derived_from=infra.managed
         */
        get: operations["listResourceTypes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resource-types/{type_key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a resource type
         * @description Returns schemas, lifecycle, relationships, capabilities and actions of one type. Example: /v1/resource-types/fleet.host
         */
        get: operations["getResourceType"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/regions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List regions
         * @description Resources of type topology.region, each with counts of the visible resources below it. Example: ?label=env=prod
         */
        get: operations["listRegions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/datacenters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List data centers
         * @description Resources of type topology.datacenter, each with counts of the visible resources below it. Example: ?label=env=prod
         */
        get: operations["listDatacenters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/layers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List layers
         * @description Resources of type topology.layer, each with counts of the visible resources below it. Example: ?label=env=prod
         */
        get: operations["listLayers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/segments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List segments
         * @description Resources of type topology.segment, each with counts of the visible resources below it. Example: ?label=env=prod
         */
        get: operations["listSegments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph of places
         * @description Returns regions, data centers, layers and segments with counts of their contents, their containment and the links between regions. Example: ?region_id=eu1
         */
        get: operations["getTopologyGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/graphs/resources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph around resources
         * @description Traverses breadth first from root_id (or from the resources that a filter selects). truncated and frontier name every cut; an entry of the frontier is continued by its page_token. Example: ?root_id=eu1-web-01&depth=2&relationship_types=depends_on
         */
        get: operations["traverseResources"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/graphs/topology": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph of places and their contents
         * @description Like /v1/graphs/resources, over contained_in and connects_to; without root_id it starts from all regions. Example: ?root_id=eu1&depth=3
         */
        get: operations["traverseTopology"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/graphs/capabilities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph of capabilities between resources
         * @description Returns a page of resources with their provided capabilities and their requirements (each a node with its state, its provider, or why no provider meets it). unsatisfied_only returns only unmet requirements. Example: ?region_id=eu1&unsatisfied_only=true
         */
        get: operations["getNeedsGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/capabilities/definitions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List capability definitions
         * @description Lists the newest version of each definition, with counts of its providers by status and region. Example: ?category=compute
         */
        get: operations["listCapabilityDefinitions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/capabilities/definitions/{capability_key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a capability definition
         * @description Returns one version (by default the newest) with its attributes, matching rules and counts of providers. Example: ?version=1.0.0
         */
        get: operations["getCapabilityDefinition"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/capabilities/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List providers of capabilities
         * @description Lists providers by priority and free capacity. attr.<name>=value, gte:n or lte:n filters by attributes; requirement_of by the needs of a requirement. Example: ?capability_key=compute.slots&attr.cpu_cores=gte:8&min_free=2&explain=true
         */
        get: operations["listCapabilityProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/capabilities/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph of capability definitions
         * @description Returns definitions and the types that provide or require them, with counts of providers and of needs that are bound, satisfiable or unsatisfied. Example: ?capability_key=compute.slots
         */
        get: operations["getCapabilityGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources:bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change many resources
         * @description Creates, updates, relates or retires up to 1,000 items, each with the checks and rights of the single route. Items succeed or fail alone, or with atomic all together. relate and retire need mode=record_only. A repeat with the same key returns the first answer of finished items and retries the others. Not in the specification.
         */
        post: operations["changeResources"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources:import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import resources
         * @description Creates, updates or keeps up to 200 items of one source by their id in the source, and returns the differences. validate_only stores no change. Items are never retired. Items that do not fit into the time of the request are deferred: send them in another request. Not in the specification.
         */
        post: operations["importResources"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/imports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start an import
         * @description Imports up to 1,000 items of one source in the background, in small transactions, with the rights that the caller holds at that time. A restart of the catalog neither loses nor repeats an item. Not in the specification.
         */
        post: operations["startImport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/imports/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an import
         * @description Returns the progress of one of the caller's imports, with counts of its results. Not in the specification.
         */
        get: operations["getImport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/imports/{job_id}/results": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the results of an import
         * @description Lists the result of each item so far, in the order of the items. Not in the specification.
         */
        get: operations["listImportResults"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/imports/{job_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel an import
         * @description Stops an import; items that were imported stay. Not in the specification.
         */
        post: operations["cancelImport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit rows of the catalog
         * @description Lists writes to resources, and refused attempts, newest first. Not in the specification. Example: ?object=resource:eu1-web-01
         */
        get: operations["listCatalogAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/intents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List intents
         * @description Intents that the caller may see, newest first.
         */
        get: operations["listIntents"];
        put?: never;
        /**
         * Create an intent
         * @description Records an intent without changing anything. Preview it to see a plan, then start the plan. Targets are resolved now and again for each plan.
         */
        post: operations["createIntent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/intents/{intent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an intent
         * @description Returns one intent with its original request, its newest plan and its operation.
         */
        get: operations["getIntent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/plans/{plan_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a plan
         * @description Returns the changes, the risk, who must agree, conflicts, and changes since the plan was made.
         */
        get: operations["getPlan"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/plans/{plan_id}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph of a plan
         * @description Returns every node that would run, in rank order. Equal plans give equal bytes.
         */
        get: operations["getPlanGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/procedures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List procedures
         * @description The newest version of every procedure of the loaded packs, with the schema of its parameters.
         */
        get: operations["listProcedures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/packs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List packs
         * @description Lists every version of every pack ever loaded, with its procedures and the operations that use it. A faulty pack is never listed: operations refuses to start with it.
         */
        get: operations["listPacks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List agents
         * @description Lists the agents of pools, with their last sign of life and their current work. A silent one stays for seven days; one that ends in order leaves at once. An agent that reads the stream or listens at an endpoint is listed if it gives its name.
         */
        get: operations["listAgents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/calendar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the calendar
         * @description Lists windows with their next opening, and current and future freezes. Both bind when a node starts, never when it ends.
         */
        get: operations["getCalendar"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/evidence/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the keys of evidence
         * @description Returns the public keys that verify exported evidence, as a JWKS. Store them separately from the files.
         */
        get: operations["listEvidenceKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List schedules
         * @description Schedules that the caller may see, newest first.
         */
        get: operations["listSchedules"];
        put?: never;
        /**
         * Schedule an intent
         * @description Creates and plans the intent at each time. With `proceed: start` the plan starts automatically; its gates still ask people. It acts with the rights that you hold at that time. A run is skipped while the previous one is still running.
         */
        post: operations["createSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a schedule
         * @description Returns one schedule with its intent, its next times and its last runs.
         */
        get: operations["getSchedule"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/gates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List waiting gates
         * @description Lists the gates that wait for a decision by people, by deadline. for=me: only those that the caller may decide.
         */
        get: operations["listWaitingGates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/waiting": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List waiting patches, failures and deadlines
         * @description Lists patches that await approval and operations held by a failure, oldest first, and what is about to expire, nearest first. At most 100 of each.
         */
        get: operations["listWaiting"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the overview
         * @description Returns outcomes by day compared with the previous period, open operations, and plans for the next 14 days.
         */
        get: operations["getOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List operations
         * @description Operations that the caller may see, newest first. Every filter narrows; arrays are alternatives.
         */
        get: operations["listOperations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read an operation
         * @description Returns status, progress, open gates, pending commands, and the actions that the caller may take now. The ETag is `"<revision>-<change_seq>"`.
         */
        get: operations["getOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the graph of an operation
         * @description Returns the plan's graph in rank order, with the live states of nodes and gates.
         */
        get: operations["getOperationGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the timeline
         * @description Events in order of their dense seq. With wait_ms the answer waits for the next one.
         */
        get: operations["getTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List nodes
         * @description Lists nodes in rank order, or failed ones first.
         */
        get: operations["listNodes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/nodes/{node_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a node
         * @description Returns specification, inputs and outputs (secrets as references), attempts, and the actions that the caller may take.
         */
        get: operations["getNode"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/artifacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List artifacts
         * @description Lists the artifacts of nodes with their digests. Their bytes are downloaded separately.
         */
        get: operations["listArtifacts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/artifacts/{artifact_id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download an artifact
         * @description Returns the bytes as an attachment; their digest is the sha256 in the list.
         */
        get: operations["downloadArtifact"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/evidence": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the evidence
         * @description The hash chain of the operation: each record names the hash before it; the first, the plan hash. With format=jsonl the whole chain as a signed file that `signalbox evidence verify` checks offline.
         */
        get: operations["getEvidence"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/gates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List gates of an operation
         * @description Lists every gate with its votes and the missing voters, without the subject.
         */
        get: operations["listGates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/gates/{gate_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a gate
         * @description Returns the subject of the decision (a vote must name its digest), the votes, context and brief outside the digest, and the actions that the caller may take.
         */
        get: operations["getGate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/patches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List patches of an operation
         * @description Lists every patch in the order of proposal, with its changes, its votes and the actions that the caller may take.
         */
        get: operations["listPatches"];
        put?: never;
        /**
         * Propose a patch
         * @description Proposes changes to nodes that have not begun. An unsound result is refused with every violation. The nodes it touches are held until it is decided.
         */
        post: operations["proposePatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/patches/{patch_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a patch
         * @description Returns its changes, the failures it mends, the nodes it holds, who must agree, and the votes. A vote must name its `digest`.
         */
        get: operations["getPatch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/commands/{command_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the outcome of a command
         * @description Returns the outcome of a command that was answered with 202: accepted until it is known, then applied, refused or withdrawn.
         */
        get: operations["getCommand"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resources/{resource_id}/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the operations of a resource
         * @description Lists operations that target the resource or otherwise touch it.
         */
        get: operations["listResourceOperations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/intents/{intent_id}/plan-preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the plan of an intent
         * @description Plans the intent against the current catalog. Returns the previous plan (200) if the new one would do the same, else a new plan that replaces it (201).
         */
        post: operations["previewPlan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/plans/{plan_id}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a plan
         * @description Locks the plan and starts its operation. `reviewed_plan_hash` names the plan that was reviewed; a different one is 412. If several callers start it, one succeeds and the others get 409 with the operation_id.
         */
        post: operations["startPlan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/freezes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a freeze
         * @description Once answered, no node that the freeze covers starts, in new or running operations; running nodes continue. You must be allowed to control operations on every resource that it covers now.
         */
        post: operations["createFreeze"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/freezes/{freeze_id}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a freeze
         * @description The nodes that it held continue automatically. Members of its approver groups can end a freeze that a person made; a freeze from a file or a control plane ends there.
         */
        post: operations["endFreeze"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a schedule
         * @description It continues with its next run.
         */
        post: operations["resumeSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule_id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a schedule now
         * @description Starts an extra run, with the same checks.
         */
        post: operations["runSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a schedule
         * @description No further run begins; running operations continue.
         */
        post: operations["pauseSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule_id}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a schedule
         * @description Ends it for good; its runs stay readable.
         */
        post: operations["endSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{schedule_id}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make the secret of a webhook
         * @description Returns a new secret, once. The previous one stays valid until `previous_until`.
         */
        post: operations["makeScheduleSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hooks/{schedule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliver a webhook
         * @description Begins a run of a schedule with `when: {webhook}`. Signed as in Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature) or as code forges do (X-Hub-Signature-256), as the schedule demands. A delivery counts once; if an operation of the schedule is running, the delivery waits for its end.
         */
        post: operations["takeWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/nodes/{node_id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a log
         * @description Returns lines of one attempt by number, from the end (tail), or matching q. wait_ms waits for more.
         */
        get: operations["getNodeLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/nodes/{node_id}/logs/raw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a log
         * @description Returns all lines of one attempt as text, byte for byte as stored. One Range is supported.
         */
        get: operations["downloadNodeLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow changes
         * @description Server-sent events of the chosen topics. A topic that the caller may not see, or that is malformed, is refused alone, in `hello`. Send Last-Event-ID to resume without a gap. `x-itemSchema` describes each event, with `data` as the JSON that it holds.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit rows of operations
         * @description Lists commands on intents, plans and operations, and refused attempts, newest first. Example: ?object=operation:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10
         */
        get: operations["listOperationAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/pools/{pool}/work": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take one piece of work from a pool
         * @description Waits up to wait_s seconds. 200 with work that only this agent has, 204 if there is none. The agent begins the work only after its "started" has been accepted at results_url; without one within 30 s, another agent gets the work. The header agent-instances says how many processes use its name, if there are several.
         */
        post: operations["takeWork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/execution-results": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report on work that was handed over
         * @description Reports started, heartbeat, progress, succeeded or failed, authorized by the execution token that came with the work. The message that ended the attempt gets the same answer again; any other repeat is answered as of now. A late or stale message is refused without effect.
         */
        post: operations["reportExecution"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/artifacts/{sha256}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Fetch an artifact of an earlier attempt
         * @description The bytes of an artifact of the same operation, by the bearer of an open execution token.
         */
        get: operations["fetchArtifact"];
        /**
         * Upload the bytes of an artifact
         * @description Sent as application/octet-stream by the bearer of the execution token whose attempt announced the artifact; on the internal listener also by a service with the scope artifacts:write. Stored only if digest and size match the announcement.
         */
        put: operations["uploadArtifact"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/engine/codec/decode": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decode payloads of the engine
         * @description Decrypts payloads that the engine stores encrypted, for its UI and command line. Plain payloads are returned unchanged. Each call is recorded in the audit log.
         */
        post: operations["decodePayloads"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what concerns the caller
         * @description Returns current permissions and groups, counts of waiting items, and parts that are not ready.
         */
        get: operations["getCaller"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read your notification rules
         * @description Which events notify you, where and when; the defaults until you set your own.
         */
        get: operations["getNotificationRules"];
        /**
         * Set your notification rules
         * @description Replaces your rules. Messages that are already queued are still sent.
         */
        put: operations["setNotificationRules"];
        post?: never;
        /**
         * Reset your notification rules
         * @description Restores the defaults: every event, to every active destination, at once.
         */
        delete: operations["resetNotificationRules"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your notifications
         * @description Messages to your destinations, newest first, kept for 30 days. Those in state `dead` were given up.
         */
        get: operations["listNotificationDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/destinations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your destinations
         * @description Where you are notified.
         */
        get: operations["listNotificationDestinations"];
        put?: never;
        /**
         * Add a destination
         * @description An email address, which is sent a code to confirm it, or the https URL of a webhook outside private networks. The URL is stored encrypted and never shown again. An active destination of this address is returned as it is. Needs a recent sign-in; your other destinations are told.
         */
        post: operations["addNotificationDestination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/destinations/{destination_id}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the secret of a webhook
         * @description The receiver verifies messages with it. Webhooks of Slack and Teams have none.
         */
        get: operations["getNotificationSecret"];
        put?: never;
        /**
         * Make the next secret of a webhook
         * @description Until `previous_until` messages carry two signatures: with the new secret and with the previous one. Needs a recent sign-in. Read the new secret afterwards.
         */
        post: operations["makeNotificationSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/push": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the push subscription of this browser
         * @description The key to subscribe with, and the subscription of your session, if any.
         */
        get: operations["getPush"];
        /**
         * Subscribe this browser
         * @description Decisions that wait for you are pushed to this browser until your session ends. Replaces the subscription of the session, and that of whoever had this browser before.
         */
        put: operations["subscribePush"];
        post?: never;
        /**
         * Unsubscribe this browser
         * @description Ends the subscription of your session, if there is one.
         */
        delete: operations["unsubscribePush"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/destinations/{destination_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a destination
         * @description No further decision is sent there. Needs a recent sign-in; your other destinations are told, and a mail address still hears of events of your account for seven days.
         */
        delete: operations["removeNotificationDestination"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/destinations/{destination_id}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm an email address
         * @description Takes the code that was sent to the address, within 24 h. After five wrong codes, add the address again.
         */
        post: operations["confirmNotificationDestination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/destinations/{destination_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test
         * @description Sends a test message. Its delivery shows whether it arrived.
         */
        post: operations["testNotificationDestination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/deliveries/{delivery_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a notification again
         * @description Retries a message in state `dead` at once, under the same id. A message that is past its time gets this one retry. Decisions that no longer wait are left out.
         */
        post: operations["redeliverNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause an operation
         * @description No node starts after the answer; running nodes finish. Gates can still be decided.
         */
        post: operations["pauseOperation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel an operation
         * @description Closes open gates and starts no more nodes. graceful lets running nodes finish; compensate also undoes succeeded nodes; force is for a cancel that is stuck.
         */
        post: operations["cancelOperation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume an operation
         * @description Resumes a paused operation. Nodes with an unknown outcome must be settled first.
         */
        post: operations["resumeOperation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/nodes/{node_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a node again
         * @description Resets the node and, with scope downstream, every node after it. Earlier attempts stay in the history.
         */
        post: operations["retryNode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/interventions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Intervene
         * @description Acts outside the plan: states how a node ended, changes its inputs, undoes it, or gives more time or capacity. The payload depends on the type. delegate_gate needs `gate:decide`, every other type `operation:intervene`.
         */
        post: operations["createIntervention"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/signals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signal an operation
         * @description For machines with the role controller: answers an external_check gate that names this machine, ends a wait for a signal, or reports resources that have changed.
         */
        post: operations["sendSignal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/gates/{gate_id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a gate
         * @description Votes for the digest that was reviewed; the gate is approved at quorum. If the policy demands four eyes, the voter must not have requested, started or changed the operation.
         */
        post: operations["approveGate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/gates/{gate_id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a gate
         * @description The gate's policy decides the effect: its nodes fail, the operation pauses, or it is cancelled.
         */
        post: operations["rejectGate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/ballots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a ballot to sign with a passkey
         * @description Returns the vote as a ballot. A passkey signs its SHA-256 (canonical JSON), and approveGate or approvePatch accepts the answer once, within 5 min. For another ballot use another key.
         */
        post: operations["createBallot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/patches/{patch_id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a patch
         * @description Votes for the digest that was reviewed. When the rule of every gate that the patch touches is met, the next revision of the graph is written at once.
         */
        post: operations["approvePatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}/patches/{patch_id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a patch
         * @description Releases the nodes that it held. If its proposer rejects it, the patch is withdrawn.
         */
        post: operations["rejectPatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    notification: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Receive a notification
         * @description Sent to a destination of the kind `webhook`, signed as Standard Webhooks specifies. A message may arrive twice, under one `webhook-id`. Verify the signature with the secret of the destination, and refuse an old `webhook-timestamp`. Redirects are not followed.
         */
        post: operations["receiveNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        /** @description A refusal (RFC 9457). */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            instance: string;
            /** @enum {unknown} */
            category: "validation_error" | "invalid_credentials" | "invalid_token" | "policy_denied" | "rate_limited" | "unavailable" | "not_found" | "version_conflict" | "invalid_state_transition" | "plan_locked" | "gate_not_waiting" | "patch_not_applicable" | "stale_catalog_projection" | "execution_result_rejected" | "unsupported_resource_type" | "invalid_capability" | "stale_projection" | "internal_error";
            code: string;
            request_id: string;
            retryable: boolean;
            hint: string;
        } & {
            [key: string]: unknown;
        };
        BadRequestProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error";
        };
        UnauthorizedProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "invalid_credentials" | "invalid_token" | "policy_denied";
        };
        ForbiddenProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "policy_denied";
        };
        NotFoundProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "not_found";
        };
        ConflictProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "version_conflict" | "invalid_state_transition" | "plan_locked" | "gate_not_waiting" | "patch_not_applicable" | "stale_catalog_projection" | "execution_result_rejected";
        };
        GoneProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "not_found";
        };
        PreconditionFailedProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "version_conflict";
        };
        ContentTooLargeProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error";
        };
        UriTooLongProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error";
        };
        UnsupportedMediaTypeProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error";
        };
        RangeNotSatisfiableProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error";
        };
        UnprocessableContentProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error" | "patch_not_applicable" | "execution_result_rejected" | "unsupported_resource_type" | "invalid_capability";
        };
        PreconditionRequiredProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "version_conflict";
        };
        TooManyRequestsProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "rate_limited";
        };
        HeadersTooLargeProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "validation_error";
        };
        InternalErrorProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "internal_error";
        };
        BadGatewayProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "unavailable";
        };
        UnavailableProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "unavailable" | "stale_catalog_projection" | "stale_projection" | "internal_error";
        };
        GatewayTimeoutProblem: components["schemas"]["Problem"] & {
            /** @enum {unknown} */
            category?: "unavailable";
        };
        Accepted: {
            resource: components["schemas"]["ResourceView"];
            operation_ref: components["schemas"]["OperationRef"];
        };
        AccessReply: {
            access_token: string;
            /** @constant */
            token_type: "Bearer";
            expires_in: number;
        };
        Action: {
            action_key: string;
            title: string;
            /** @enum {unknown} */
            mode: "operation" | "record";
            intent_kind: string;
            allowed_in: string[];
            /** @enum {unknown} */
            risk: "low" | "medium" | "high";
            input_schema: {
                [key: string]: unknown;
            };
        };
        ActorSchema: {
            /** @enum {unknown} */
            kind: "user" | "service" | "executor" | "engine" | "system";
            id: string;
            name: string;
            roles?: string[];
            /** @description For a vote by delegation: who delegated. The two count as one. */
            in_place_of?: string;
        };
        Affected: {
            /** @description Resources that would be affected if the targets failed, excluding the targets. */
            total: number;
            /** @description The traversal stopped at its limit: counts are lower bounds. */
            at_least: boolean;
            /** @description How many of them would become unhealthy; the others would be degraded. */
            unhealthy: number;
            /** @description The largest group first, at most 50. */
            groups: {
                type_key: string;
                health_status: components["schemas"]["Health"];
                count: number;
                unhealthy: number;
                /** @description The ones nearest to the targets. */
                nearest: {
                    resource_id: string;
                    name: string;
                }[];
            }[];
            /** @description The last event of the catalog that was counted. */
            watermark: string;
        };
        AgentList: {
            items: components["schemas"]["AgentView"][];
        };
        AgentView: {
            /** @description The machine, and the name that the agent gives itself; without a machine, its pool: pool:infra/one. */
            agent: string;
            machine: string;
            /**
             * @description silent: no sign of life for a minute. draining: it takes no more work.
             * @enum {unknown}
             */
            status: "idle" | "working" | "draining" | "silent";
            pools: string[];
            labels: {
                [key: string]: string;
            };
            version: string | null;
            concurrency: number | null;
            /** @description So many processes use this name. Give each its own. */
            instances?: number;
            /** @description RFC 3339, UTC, microseconds. */
            since: string;
            /** @description RFC 3339, UTC, microseconds. */
            seen_at: string;
            /** @description How many pieces of work it has now. */
            works: number;
            /** @description Those of its works whose operations the caller may see. */
            work: {
                /**
                 * Format: uuid
                 * @description The operation; also its workflow id.
                 */
                operation_id: string;
                node_id: string;
                pool: string;
                attempt: number;
                started_at: string | null;
            }[];
        };
        /** @description The actions that the caller may take now, by the rules that also decide the command, with the reason for each that is not allowed. */
        AllowedActionSchema: {
            action: string;
            allowed: boolean;
            reason_category: string | null;
            reason_code: string | null;
            reason: string | null;
            available_at: string | null;
        };
        /** @description Why it cannot be decided in bulk; null if it can. */
        AloneSchema: {
            approve: ("kind" | "signature" | "policy" | "comment" | "risk") | null;
            reject: ("kind" | "signature" | "policy" | "comment" | "risk") | null;
        };
        /** @description Longer notes, 32 KiB in all; not for filtering. */
        Annotations: {
            [key: string]: string;
        };
        ApproveBody: {
            reviewed_digest: string;
            /** @description The round that you decide. */
            round: number;
            comment?: string;
            as_group?: string;
            assertion?: components["schemas"]["Assertion"];
            break_glass?: {
                reason: string;
            };
            batch?: components["schemas"]["Batch"];
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        ApprovePatchBody: {
            reviewed_digest: string;
            comment?: string;
            assertion?: components["schemas"]["Assertion"];
            batch?: components["schemas"]["Batch"];
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        ArtifactList: {
            items: components["schemas"]["ArtifactView"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        ArtifactTaken: {
            sha256: string;
            size: number;
            /** @description The bytes were already stored. */
            duplicate: boolean;
        };
        ArtifactView: {
            artifact_id: string;
            node_id: string;
            attempt: number;
            name: string;
            kind: string;
            media_type: string;
            size: number;
            sha256: string;
            status: string;
            uri: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            expires_at: string | null;
        };
        AsOf: {
            /** @description RFC 3339, UTC, microseconds. */
            time: string;
            /** @description Position in the log of this app, as text. */
            seq: string;
        };
        Assertion: {
            id: string;
            rawId: string;
            /** @constant */
            type: "public-key";
            response: {
                clientDataJSON: string;
                authenticatorData: string;
                signature: string;
                userHandle?: string;
            } & {
                [key: string]: unknown;
            };
            clientExtensionResults: {
                [key: string]: unknown;
            };
            authenticatorAttachment?: string;
        };
        AttemptView: {
            attempt: number;
            /** @enum {unknown} */
            role: "run" | "undo";
            generation: number;
            fences: string[];
            executor: string;
            pool: string | null;
            phase: string;
            /** @description RFC 3339, UTC, microseconds. */
            started_at: string;
            ended_at: string | null;
            error: {
                class: string;
                message: string;
                retryable: boolean;
                hint?: string;
            } | null;
            heartbeat_at: string | null;
            progress: {
                [key: string]: unknown;
            } | null;
            log: {
                lines: number;
                bytes: number;
                complete: boolean;
            };
        };
        Attestation: {
            id: string;
            rawId: string;
            /** @constant */
            type: "public-key";
            response: {
                clientDataJSON: string;
                attestationObject: string;
            } & {
                [key: string]: unknown;
            };
            clientExtensionResults: {
                [key: string]: unknown;
            };
            authenticatorAttachment?: string;
        };
        AuditList: {
            items: components["schemas"]["AuditView"][];
            next_page_token: string | null;
            as_of: string;
        };
        AuditView: {
            at: string;
            actor: string;
            on_behalf_of: string | null;
            roles: string[];
            action: string;
            object: string;
            outcome: string;
            reason: string | null;
            request_id: string | null;
            command_id: string | null;
            before_hash: string | null;
            after_hash: string | null;
        };
        BallotBody: {
            /** @enum {unknown} */
            type: "gate" | "patch";
            id: string;
            round: number | null;
            digest: string;
        };
        BallotReply: {
            ballot: components["schemas"]["BallotView"];
            credential_ids: string[];
        };
        BallotView: {
            /** @constant */
            v: 1;
            rp_id: string;
            operation_id: string;
            /** @enum {unknown} */
            type: "gate" | "patch";
            id: string;
            round: number | null;
            digest: string;
            /** @constant */
            decision: "approve";
            user_id: string;
            nonce: string;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
        };
        /** @description For a vote that is part of a bulk decision; the evidence says so. */
        Batch: {
            /**
             * Format: uuid
             * @description The same in each vote of the batch.
             */
            id: string;
            size: number;
        };
        BlockedOnSchema: {
            kind: string;
            id: string;
            href?: string;
            since?: string;
            until?: string;
            message: string;
        };
        BriefTarget: {
            resource_id: string;
            name: string;
            health: components["schemas"]["Health"];
        };
        BulkDone: {
            resource_id: string;
            version: number;
            /** @description False if no change was needed. */
            applied: boolean;
            operation_ref?: components["schemas"]["OperationRef"];
        };
        BulkItem: {
            /** @enum {unknown} */
            op: "create" | "update" | "relate" | "retire";
            /** @description create: the body of POST /v1/resources. update: {resource_id, expected_version, patch}. relate: {resource_id, expected_version, relationship_changes}. retire: {resource_id, expected_version}. */
            change: {
                [key: string]: unknown;
            };
        };
        BulkReply: {
            results: {
                index: number;
                /** @description The answer that the endpoint for this single change would have given. */
                status: number;
                /** @description The first answer to this item again. */
                replayed?: boolean;
                body: components["schemas"]["BulkDone"] | ({
                    category: string;
                    code: string;
                } & {
                    [key: string]: unknown;
                });
            }[];
        };
        BulkRequest: {
            /** @description All items, or none and the first refusal with its index. Default: each by itself. */
            atomic?: boolean;
            items: components["schemas"]["BulkItem"][];
        };
        CalendarView: {
            windows: {
                window_id: string;
                applies: string;
                timezone: string;
                days: string[];
                from: string;
                to: string;
                open: boolean;
                opens_at: string | null;
                closes_at: string | null;
            }[];
            freezes: components["schemas"]["FreezeItem"][];
            /** @description RFC 3339, UTC, microseconds. */
            as_of: string;
        };
        CancelBody: {
            /**
             * @description graceful (default): running nodes finish and are not undone. compensate: succeeded nodes are then undone in reverse order. force: stop at once, outcomes unknown.
             * @enum {unknown}
             */
            mode?: "graceful" | "compensate" | "force";
            /** @description Why; kept in history and audit. */
            reason: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        CapabilityChange: {
            /** @enum {unknown} */
            op: "add" | "update" | "remove";
            capability_key: string;
            version: string;
            attributes?: {
                [key: string]: unknown;
            };
            capacity?: {
                total?: number;
                used?: number;
            };
            priority?: number;
            expires_at?: string | null;
        };
        CapabilityCounts: {
            provided: number;
            required: number;
        };
        CapabilityDefinition: {
            capability_key: string;
            version: string;
            pack: string;
            title: string;
            category: string;
            /** @enum {unknown} */
            status: "active" | "deprecated";
            /** @enum {unknown} */
            sharing: "shared" | "exclusive" | "counted";
            unit: string | null;
            attributes_schema: {
                [key: string]: unknown;
            };
            match_rules: {
                [key: string]: string;
            };
            checksum: string;
            /** @description All versions ever loaded, newest first. */
            versions: string[];
            /** @description Of all versions; only what the caller may see. */
            providers: {
                total: number;
                by_status: {
                    [key: string]: number;
                };
                by_region: {
                    [key: string]: number;
                };
            };
        };
        CapabilityGraph: {
            nodes: ({
                id: string;
                /** @constant */
                kind: "capability";
                capability_key: string;
                title: string;
                providers: {
                    total: number;
                    by_status: {
                        [key: string]: number;
                    };
                };
                requirements: components["schemas"]["RequirementCounts"];
            } | {
                id: string;
                /** @constant */
                kind: "type";
                type_key: string;
                title: string;
            })[];
            edges: {
                /** @enum {unknown} */
                type: "provides" | "requires";
                from: string;
                to: string;
                /** @description provides: how many there are. */
                providers?: number;
                requirements?: components["schemas"]["RequirementCounts"];
            }[];
            as_of: components["schemas"]["ReadAsOf"];
        };
        CatalogWrite: {
            lifecycle_status?: unknown;
            health_status?: unknown;
            desired_state_patch?: unknown;
            observed_state_patch?: unknown;
            relationship_changes?: unknown;
            provided_capability_changes?: unknown;
        };
        /** @enum {unknown} */
        ChangeKind: "user.create" | "user.enable" | "user.reset" | "user.recover" | "grant.create" | "member.add" | "machine.credential";
        /** @enum {unknown} */
        ChangeState: "pending" | "confirmed" | "rejected" | "withdrawn" | "expired";
        /** @description The person the change concerns; the digest covers it. */
        ChangeSubject: {
            /** @enum {unknown} */
            type: "user" | "group";
            id: string | null;
            name: string;
            status: ("ACTIVE" | "DISABLED" | "DELETED") | null;
            version: number | null;
            roles: string[];
            groups: string[];
            members: string[];
            /** @description The roles that the change grants, or that the account holds. */
            gives: string[];
        };
        ChangeView: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["ChangeKind"];
            digest: string;
            /** Format: uuid */
            requested_by: string;
            /** Format: date-time */
            expires_at: string;
            status: components["schemas"]["ChangeState"];
            request: {
                username?: string;
                grants?: components["schemas"]["NewGrant"][];
                user_id?: string;
                group_key?: string;
                /** @enum {unknown} */
                subject_type?: "user" | "group";
                subject_id?: string;
                role?: string;
                scope?: components["schemas"]["GrantScope"];
                expires_at?: string;
                expires_in_days?: number;
                reason?: string;
                machine_id?: string;
                credential_id?: string;
                /** @enum {unknown} */
                kind?: "key" | "jwk" | "trust";
                name?: string;
                permissions?: string[];
                networks?: string[];
                jwk?: components["schemas"]["Jwk"] | null;
                trust?: components["schemas"]["Trust"] | null;
            };
            subject: components["schemas"]["ChangeSubject"];
            /** Format: date-time */
            requested_at: string;
            decided_by: string | null;
            decided_at: string | null;
            user_id: string | null;
        };
        Changes: {
            items: components["schemas"]["ChangeView"][];
            next_page_token: string | null;
            /** Format: date-time */
            as_of: string;
            control: {
                dual_since: string | null;
                notice: string | null;
            };
        };
        CheckResult: {
            gate_id: string;
            round: number;
            /** @enum {unknown} */
            verdict: "running" | "passed" | "failed";
            summary?: string;
            details_url?: string;
        };
        CommandReply: {
            command: components["schemas"]["CommandView"];
            outcome: ({
                category: string | null;
                code: string | null;
                detail: string | null;
            } & {
                [key: string]: unknown;
            }) | null;
        };
        CommandView: {
            command_id: string;
            kind: string;
            /** @enum {unknown} */
            status: "accepted" | "applied" | "refused" | "withdrawn";
            code: string | null;
            seq: number;
            /** @description RFC 3339, UTC, microseconds. */
            accepted_at: string;
            not_after: string | null;
        };
        /** @description own and rest: since ended_at, but at most the last hour. before: the resources themselves in the hour before started_at. */
        ComparedMetric: {
            key: string;
            title: string;
            unit: string;
            /** @enum {unknown} */
            better: "lower" | "higher";
            own: components["schemas"]["Median"];
            rest: components["schemas"]["Median"];
            before: components["schemas"]["Median"];
        };
        Condition: {
            /** @enum {unknown} */
            type: "active" | "in_sync" | "healthy";
            /** @enum {unknown} */
            status: "true" | "false" | "unknown";
            reason: string;
            message: string;
            observed_generation: number;
            /** @description RFC 3339 in UTC with microseconds. */
            last_transition_at: string;
        };
        ConfirmBody: {
            /** @description The code of the mail. */
            code: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        Constraints: {
            window_id?: string;
            /** Format: date-time */
            not_before?: string;
            deadline_s?: number;
            /** @enum {unknown} */
            on_deadline?: "graceful" | "compensate";
            max_parallel?: number;
            /** @enum {unknown} */
            risk_ceiling?: "low" | "medium" | "high";
            pause_on_failure?: boolean;
            /** @description How many nodes may fail or end unknown; one more pauses the operation. Above 0 a failed target is skipped, except in a canary. After a resume each further failure pauses again. */
            failure_budget?: number;
            /** @enum {unknown} */
            on_drift?: "pause" | "ignore";
            batch?: {
                size?: number;
                canary?: number;
                by?: string;
            };
        };
        CredentialView: {
            /** Format: uuid */
            id: string;
            /** @enum {unknown} */
            kind: "key" | "jwk" | "trust";
            name: string;
            permissions: string[];
            scope: components["schemas"]["GrantScope"];
            networks: string[];
            jwk: components["schemas"]["Jwk"] | null;
            trust: components["schemas"]["Trust"] | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            revoked_at: string | null;
            last_used_at: string | null;
            last_address: string | null;
        };
        CsrfReply: {
            csrf_token: string;
        };
        CurrentUser: {
            /** Format: uuid */
            id: string;
            username: string;
            /** @enum {unknown} */
            kind: "person" | "machine";
            /** @enum {unknown} */
            status: "ACTIVE" | "DISABLED" | "DELETED";
            /** Format: date-time */
            created_at: string;
            disabled_at: string | null;
            roles: string[];
            groups: string[];
            grants: components["schemas"]["GrantView"][];
            session: {
                /** Format: uuid */
                id: string;
                /** @enum {unknown} */
                mode: "json" | "cookie" | "machine";
                auth_time: number;
            };
        };
        DecidedChange: {
            change: components["schemas"]["ChangeView"];
        };
        DefinitionList: {
            items: components["schemas"]["CapabilityDefinition"][];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
        };
        DeliveryList: {
            items: components["schemas"]["DeliveryView"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        DeliveryView: {
            /** Format: uuid */
            delivery_id: string;
            /** Format: uuid */
            destination_id: string;
            /**
             * @description `outcome`: a device is told that a decision no longer waits, in place of the notification.
             * @enum {unknown}
             */
            purpose: "notices" | "outcome" | "code" | "test" | "security";
            security_event: ("device.new" | "password.changed" | "account.reset" | "account.recovery" | "passkey.added" | "passkey.removed" | "totp.added" | "totp.removed" | "totp.locked" | "provider.linked" | "provider.unlinked" | "rights.changed" | "destination.added" | "destination.removed" | "key.ending" | "key.seen" | "break_glass.used" | "spray.suspected") | null;
            /**
             * @description `dead`: it was given up. `obsolete`: when it was to be sent, all of it was settled or no longer yours.
             * @enum {unknown}
             */
            state: "queued" | "sent" | "dead" | "obsolete";
            attempts: number;
            last_error: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            next_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            ended_at: string | null;
            notices: components["schemas"]["Notice"][];
        };
        DestinationBody: {
            /** @enum {unknown} */
            kind: "email" | "webhook" | "slack" | "teams";
            name: string;
            /** @description An email address, or the URL of a webhook. Later only the URL's origin is shown. */
            address: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        DestinationList: {
            items: components["schemas"]["DestinationView"][];
        };
        DestinationView: {
            /** Format: uuid */
            destination_id: string;
            /** @enum {unknown} */
            kind: "email" | "webhook" | "slack" | "teams" | "push";
            name: string;
            /** @description An email address, or the origin of a URL. */
            address: string;
            /** @enum {unknown} */
            status: "unconfirmed" | "active" | "disabled";
            status_reason: string | null;
            previous_until: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
        };
        DeviceAuthorization: {
            device_code: string;
            user_code: string;
            verification_uri: string;
            verification_uri_complete: string;
            expires_in: number;
            /** @description Seconds between two polls of POST /v1/token. */
            interval: number;
        };
        DeviceCode: {
            user_code: string;
        };
        DeviceRequestView: {
            user_code: string;
            client_id: string;
            /** @description As the machine calls itself. */
            host: string;
            ip_address: string | null;
            user_agent: string | null;
            asked_at: string;
            expires_at: string;
            /** @description Whether the caller comes from the same address. */
            same_address: boolean;
        };
        Difference: {
            /** @description RFC 3339 in UTC with microseconds. */
            from: string;
            /** @description RFC 3339 in UTC with microseconds. */
            to: string;
            items: components["schemas"]["DifferenceItem"][];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
        };
        DifferenceItem: {
            resource_id: string;
            type_key: string;
            name: string;
            /**
             * @description moved: to another parent within the subtree; moved_in, moved_out: across its boundary, alone or with an ancestor.
             * @enum {unknown}
             */
            kind: "added" | "removed" | "changed" | "moved" | "moved_in" | "moved_out";
            version_from: number | null;
            version_to: number | null;
            /** @description At most 100 members that differ; more_changes counts the rest. */
            changes: {
                path: string;
                /** @description Left out: there was no value. */
                before?: unknown;
                /** @description Left out: there is no value. */
                after?: unknown;
            }[];
            more_changes: number;
            /** @description Relationships from this resource that are open at only one of the two times, or have other properties; at most 100. */
            relationships: {
                /** @enum {unknown} */
                op: "added" | "removed" | "updated";
                type_key: string;
                to_id: string | null;
            }[];
            /** @description Who changed it between the two times. */
            actors: string[];
            /** @description By which operations; at most 20. */
            operation_ids: string[];
            last_change_at: string | null;
        };
        Drift: {
            /** @enum {unknown} */
            status: "in_sync" | "drifted" | "unknown";
            paths: string[];
        };
        DriftSignal: {
            /** @description Resources that have changed: the operation pauses if it would meet other versions. */
            resource_ids: string[];
        };
        DryRunReply: {
            /** @constant */
            dry_run: true;
            effect: {
                [key: string]: unknown;
            };
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        EngineRef: {
            namespace: string;
            workflow_id: string;
            run_id: string;
            ui_url: string;
        };
        Enrol: {
            enrolment_token: string;
            new_password: string;
        };
        Enrolment: {
            token: string;
            url: string;
            /** Format: date-time */
            expires_at: string;
        };
        EnrolmentHalf: {
            half: {
                /** @enum {unknown} */
                part: "first" | "second";
                token: string;
                url: string;
                /** Format: date-time */
                expires_at: string;
            };
        };
        Escalation: {
            level: number;
            next_at: string | null;
        };
        EventView: {
            /** Format: date-time */
            at: string;
            actor: string;
            roles: string[];
            action: string;
            object: string;
            outcome: string;
            reason: string | null;
            request_id: string | null;
        };
        Evidence: {
            records: components["schemas"]["EvidenceRecordView"][];
            head: {
                seq: number;
                hash: string;
            };
        };
        EvidenceKeys: {
            keys: {
                /** @constant */
                kty: "OKP";
                /** @constant */
                crv: "Ed25519";
                /** @constant */
                alg: "EdDSA";
                /** @constant */
                use: "sig";
                x: string;
                kid: string;
            }[];
        };
        EvidenceRecordView: {
            /** @constant */
            v: 1;
            operation_id: string;
            seq: number;
            kind: string;
            statement: string;
            /** @description A vote contains round, digest and decision; a decided gate contains round, status and digest; a node that ran behind gates names those gates; one that an agent ran names the program. The hash covers all of it. */
            subject: {
                type: string;
                id: string;
                round?: number;
                status?: string;
                digest?: string;
                /** @description RFC 3339, UTC, microseconds. */
                began_at?: string;
                executed?: components["schemas"]["Executed"];
            } & {
                [key: string]: unknown;
            };
            subject_digest: string;
            actor: {
                /** @enum {unknown} */
                kind: "user" | "service" | "executor" | "engine" | "system";
                id: string;
                name: string;
                roles?: string[];
                /** @description For a vote by delegation: who delegated. The two count as one. */
                in_place_of?: string;
            } & {
                [key: string]: unknown;
            };
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
            prev_hash: string;
            hash: string;
        };
        EvidenceRef: {
            uri: string;
            kind: string;
            digest?: string;
            media_type?: string;
            size?: number;
            /** Format: date-time */
            created_at?: string;
            label?: string;
        };
        Executed: {
            /** @description The file name of the program. */
            tool: string;
            tool_sha256?: string;
            /** @description As the program states it. */
            version?: string;
            /** @description Absent if the program was killed, or none acted. */
            exit?: number;
            /** @description The saved plan, or the set of objects, that was carried out. */
            content_sha256?: string;
            commit?: string;
            agent?: string;
        } & {
            [key: string]: unknown;
        };
        ExecutionReply: {
            accepted: boolean;
            duplicate: boolean;
            node_state: string;
            /** @description Stop, and report failed with class cancelled, or the real outcome. */
            cancel_requested: boolean;
            next_before: string | null;
            /** @description Seconds that the work still has. Its time begins with the accepted "started" and may be extended; clocks may differ. */
            left_s?: number;
        };
        ExecutionResult: {
            /**
             * Format: uuid
             * @description The same in every retry.
             */
            result_id: string;
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            node_id: string;
            attempt: number;
            generation: number;
            fence: number;
            /** @description Grows by one with each message of an attempt. */
            sequence: number;
            /** @enum {unknown} */
            phase: "started" | "heartbeat" | "progress" | "succeeded" | "failed" | "unknown";
            /** @description The name of an agent that does not ask for its work, so that GET /v1/agents lists the work. */
            agent?: string;
            progress?: {
                [key: string]: unknown;
            };
            outputs?: {
                [key: string]: unknown;
            };
            error?: {
                class: string;
                message: string;
                retryable?: boolean;
            };
            executed?: {
                /** @description The file name of the program. */
                tool: string;
                tool_sha256?: string;
                /** @description As the program states it. */
                version?: string;
                /** @description Absent if the program was killed, or none acted. */
                exit?: number;
                /** @description The saved plan, or the set of objects, that was carried out. */
                content_sha256?: string;
                commit?: string;
            };
            /** @description What the attempt has made; the bytes come by PUT /internal/v1/artifacts/{sha256}. */
            artifacts?: {
                name: string;
                kind: string;
                media_type: string;
                size: number;
                sha256: string;
                /** @description Kept elsewhere. */
                uri?: string;
            }[];
            /** @description Log lines, numbered densely per attempt. */
            lines?: {
                seq: number;
                /** Format: date-time */
                time: string;
                /** @enum {unknown} */
                stream: "stdout" | "stderr" | "log";
                /** @enum {unknown} */
                level: "debug" | "info" | "warn" | "error";
                text: string;
                /** @description The line was longer; the rest of it is not sent. */
                cut?: boolean;
            }[];
        };
        Expiring: {
            /** @enum {unknown} */
            kind: "operation" | "plan" | "gate" | "delegation";
            operation_id: string | null;
            plan_id: string | null;
            gate_id: string | null;
            /** @description Of the operation, or of the intent of a plan. */
            title: string;
            question: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            follows: string | null;
            mine: boolean;
        };
        ExternalIdentityList: {
            items: {
                provider: string;
                /** @description The name of the person there; it never changes. */
                subject: string;
                /** Format: date-time */
                linked_at: string;
            }[];
        };
        FreezeCreation: {
            freeze_id: string;
            title: string;
            /** @description CEL over `target`; a target that it cannot be evaluated for is covered. */
            applies: string;
            /** Format: date-time */
            from: string;
            /**
             * Format: date-time
             * @description Not included; later than `from`.
             */
            to: string;
            /** @description Groups whose members may override it for an operation. */
            approvers: string[];
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        FreezeEnd: {
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        FreezeEnded: {
            freeze_id: string;
        };
        FreezeItem: {
            freeze_id: string;
            title: string;
            applies: string;
            /** @description RFC 3339, UTC, microseconds. */
            from: string;
            /** @description RFC 3339, UTC, microseconds. */
            to: string;
            approvers: string[];
            in_force: boolean;
            put_by: string | null;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        Gate: {
            gate_id: string;
            operation_id: string;
            operation_title: string;
            kind: string;
            question: string;
            status: components["schemas"]["GateStatusSchema"];
            round: number;
            guards: string[];
            policy: {
                [key: string]: unknown;
            };
            votes: components["schemas"]["VoteView"][];
            missing: components["schemas"]["MissingVotes"][];
            eligible: {
                id: string;
                name: string;
            }[];
            eligible_me: boolean;
            why_not_me: string | null;
            digest: string;
            waiting_since: string | null;
            deadline_at: string | null;
            on_timeout: string;
            on_reject: string;
            escalation: components["schemas"]["Escalation"];
            consumed_at: string | null;
            decided: components["schemas"]["GateDecision"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            /** @description The subject of the decision; `digest` is the digest of its canonical JSON. */
            subject: unknown;
            context: components["schemas"]["GateContext"];
            /** @description Null in the answer to a vote. */
            brief: components["schemas"]["GateBrief"] | null;
        };
        GateBrief: {
            asked: {
                requester: components["schemas"]["ActorSchema"];
                title: string;
                reason: string;
                ticket: string | null;
                plan_id: string;
                plan_hash: string;
            };
            /** @description For targets whose name differs from their id. */
            names: {
                [key: string]: string;
            };
            types: {
                type_key: string;
                count: number;
            }[];
            regions: string[];
            /** @description Targets of each batch, in the order of the plan. */
            batches: number[];
            now: {
                count: number;
                health: components["schemas"]["HealthCount"][];
                worst: components["schemas"]["BriefTarget"][];
                /** @description Targets that the caller may not see. */
                hidden: number;
            };
            canary: {
                count: number;
                health: components["schemas"]["HealthCount"][];
                worst: components["schemas"]["BriefTarget"][];
                named: components["schemas"]["BriefTarget"][];
                /** @description RFC 3339, UTC, microseconds. */
                ended_at: string;
                retries: number;
                metrics?: components["schemas"]["ComparedMetric"][] | null;
            } | null;
            risk: components["schemas"]["Risk"];
            estimates: {
                p50_s: number;
                p90_s: number;
            };
            /** @description The steps that canceling with compensation undoes, and those that it cannot. */
            undo: {
                possible: boolean;
                lasting: {
                    node_id: string;
                    name: string;
                }[];
                lasting_count: number;
            };
            /** @description The released nodes of the subject, in the order of the plan. */
            order: string[];
            void_votes: {
                name: string;
                why: string;
                round: number;
            }[];
        };
        GateContext: {
            /** @description RFC 3339, UTC, microseconds. */
            as_of: string;
            dependents: string[];
            affected: components["schemas"]["Affected"] | null;
            policy_results: unknown[];
            rehearsal: unknown;
            evidence: unknown[];
            compensations: unknown[];
            conflicts: unknown[];
        };
        GateDecision: {
            by: components["schemas"]["ActorSchema"];
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
            command_id: string | null;
        };
        GateList: {
            items: components["schemas"]["GateSummary"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        GateReply: {
            gate_id: string;
            operation_id: string;
            operation_title: string;
            kind: string;
            question: string;
            status: components["schemas"]["GateStatusSchema"];
            round: number;
            guards: string[];
            policy: {
                [key: string]: unknown;
            };
            votes: components["schemas"]["VoteView"][];
            missing: components["schemas"]["MissingVotes"][];
            eligible: {
                id: string;
                name: string;
            }[];
            eligible_me: boolean;
            why_not_me: string | null;
            digest: string;
            waiting_since: string | null;
            deadline_at: string | null;
            on_timeout: string;
            on_reject: string;
            escalation: components["schemas"]["Escalation"];
            consumed_at: string | null;
            decided: components["schemas"]["GateDecision"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            /** @description The subject of the decision; `digest` is the digest of its canonical JSON. */
            subject: unknown;
            context: components["schemas"]["GateContext"];
            /** @description Null in the answer to a vote. */
            brief: components["schemas"]["GateBrief"] | null;
            operation_status: components["schemas"]["OperationStatusSchema"];
            command: components["schemas"]["CommandView"];
        };
        /** @enum {unknown} */
        GateStatusSchema: "armed" | "waiting" | "approved" | "rejected" | "expired" | "bypassed" | "cancelled";
        GateSummary: {
            gate_id: string;
            operation_id: string;
            operation_title: string;
            kind: string;
            question: string;
            status: components["schemas"]["GateStatusSchema"];
            round: number;
            guards: string[];
            policy: {
                [key: string]: unknown;
            };
            votes: components["schemas"]["VoteView"][];
            missing: components["schemas"]["MissingVotes"][];
            eligible: {
                id: string;
                name: string;
            }[];
            eligible_me: boolean;
            why_not_me: string | null;
            digest: string;
            waiting_since: string | null;
            deadline_at: string | null;
            on_timeout: string;
            on_reject: string;
            escalation: components["schemas"]["Escalation"];
            consumed_at: string | null;
            decided: components["schemas"]["GateDecision"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        /** @description Where a grant applies: all given fields must match; none given means everywhere. */
        GrantScope: {
            region_id?: string;
            datacenter_id?: string;
            layer_id?: string;
            segment_id?: string;
            type_key?: string;
        };
        GrantView: {
            /** Format: uuid */
            id: string;
            role: string;
            scope: components["schemas"]["GrantScope"];
            expires_at: string | null;
            via_group_key: string | null;
        };
        Graph: {
            roots: string[];
            nodes: components["schemas"]["ResourceGraphNode"][];
            edges: components["schemas"]["GraphEdge"][];
            truncated: {
                nodes: boolean;
                edges: boolean;
                fanout: boolean;
                depth: boolean;
            };
            frontier: {
                resource_id: string;
                /** @enum {unknown} */
                direction: "out" | "in" | "both";
                /** @description Neighbors that are not shown. */
                omitted: number;
                page_token: string | null;
            }[];
            frontier_omitted: number;
            /** @description With include=health: how many resources were visited, and whether the visit was cut short. */
            rollup?: {
                visited: number;
                truncated: boolean;
            };
            as_of: components["schemas"]["ReadAsOf"];
        };
        GraphDifference: {
            added: string[];
            removed: string[];
            changed: {
                node_id: string;
                fields: {
                    path: string;
                    before: unknown;
                    after: unknown;
                }[];
            }[];
            added_gates: string[];
            removed_gates: string[];
            max_parallel: {
                before: number;
                after: number;
            } | null;
            risk?: {
                before: string;
                after: string;
            } | null;
        };
        GraphEdge: {
            relationship_id: string;
            type_key: string;
            from: string;
            to: string;
        };
        GraphGate: {
            gate_id: string;
            /** @description The key of a gate policy, or a policy of its own. */
            policy: string | {
                approvals?: {
                    quorum?: number;
                    groups?: {
                        group: string;
                        min: number;
                    }[];
                    four_eyes?: boolean;
                    /** @enum {unknown} */
                    reject_rule?: "any" | "majority";
                    comment_on_approve?: boolean;
                    /**
                     * @description Each approval needs a passkey.
                     * @constant
                     */
                    signature?: "required";
                };
                deadline_s?: number;
                /** @enum {unknown} */
                on_timeout?: "reject" | "hold";
                /** @enum {unknown} */
                on_reject?: "fail_nodes" | "hold" | "cancel_operation";
                /** @enum {unknown} */
                lease_policy?: "hold" | "release";
                /**
                 * @description It cannot be approved in bulk.
                 * @constant
                 */
                bulk?: false;
                /**
                 * @description What happens to a used approval if its voter loses the right: it is requested again, or stays valid.
                 * @enum {unknown}
                 */
                on_voter_loss?: "reask" | "keep_after_start";
                /** @description A service, or a machine (machine:NAME), that answers instead of people; not together with approvals. */
                check?: {
                    service: string;
                    timeout_s: number;
                };
            };
            question?: string;
            guards: string[];
        };
        GraphNode: {
            node_id: string;
            name?: string;
            /** @enum {unknown} */
            kind?: "task" | "barrier" | "wait";
            executor?: string;
            pool?: string;
            with?: {
                [key: string]: unknown;
            };
            target_id?: string;
            depends_on?: string[];
            /** @enum {unknown} */
            join?: "all" | "any" | "settled";
            /** @description A CEL expression. */
            when?: string;
            idempotent?: boolean;
            outputs?: {
                [key: string]: string;
            };
            outputs_schema?: {
                [key: string]: unknown;
            };
            timeouts?: {
                start_s?: number;
                run_s?: number;
                heartbeat_s?: number;
            };
            retry?: {
                max_attempts?: number;
                initial_s?: number;
                factor?: number;
                max_s?: number;
                retry_on?: string[];
            };
            /** @enum {unknown} */
            on_failure?: "hold" | "tolerate" | "skip_dependents" | "fail" | "compensate";
            compensate?: {
                executor?: string;
                with?: {
                    [key: string]: unknown;
                };
                /** @description A CEL expression. */
                when?: string;
                idempotent?: boolean;
                catalog?: components["schemas"]["CatalogWrite"];
            };
            catalog?: components["schemas"]["CatalogWrite"];
            secrets?: {
                [key: string]: unknown;
            };
            skippable?: boolean;
            tags?: string[];
            risk?: number;
            estimate_s?: number;
            group?: string;
        };
        GroupMember: {
            /** Format: uuid */
            id: string;
            username: string;
            /** @enum {unknown} */
            kind: "person" | "machine";
            /** @enum {unknown} */
            status: "ACTIVE" | "DISABLED" | "DELETED";
            /** Format: date-time */
            created_at: string;
            disabled_at: string | null;
            added_by: string | null;
        };
        GroupPatch: {
            name?: string;
            description?: string | null;
        };
        GroupView: {
            group_key: string;
            name: string;
            description: string | null;
            members: components["schemas"]["GroupMember"][];
            version: number;
            /** Format: date-time */
            created_at: string;
        };
        /** @enum {unknown} */
        Health: "healthy" | "degraded" | "unhealthy" | "unknown" | "maintenance";
        HealthCount: {
            status: components["schemas"]["Health"];
            count: number;
        };
        HealthMetric: {
            key: string;
            title: string;
            unit: string;
            /** @enum {unknown} */
            better: "lower" | "higher";
        };
        HealthView: {
            own: {
                status: components["schemas"]["Health"];
                /** @enum {unknown} */
                reason: "never_observed" | "expired" | "observed" | "lifecycle";
                /** @description RFC 3339 in UTC with microseconds. */
                since: string;
                expires_at: string | null;
            };
            checks: {
                source: string;
                check_key: string;
                status: components["schemas"]["Health"];
                /** @description RFC 3339 in UTC with microseconds. */
                observed_at: string;
                /** @description RFC 3339 in UTC with microseconds. */
                expires_at: string;
                expired: boolean;
                summary: string | null;
            }[];
            /** @description Includes every resource that it takes health from. Present only. */
            rollup?: {
                status: components["schemas"]["Health"];
                /** @description At most 5: the worst, then the nearest. */
                causes: {
                    /** @description Resource ids; null for one that you may not see. */
                    path: (string | null)[];
                    resource_id: string | null;
                    status: components["schemas"]["Health"];
                    check: {
                        source: string;
                        check_key: string;
                        status: components["schemas"]["Health"];
                    } | null;
                    age_s: number | null;
                    hidden: boolean;
                }[];
                visited: number;
                /** @description More than 100,000 resources are in reach, so the true health may be worse. */
                truncated: boolean;
            };
            history?: {
                items: {
                    source: string;
                    check_key: string;
                    status: components["schemas"]["Health"];
                    /** @description RFC 3339 in UTC with microseconds. */
                    observed_at: string;
                    /** @description RFC 3339 in UTC with microseconds. */
                    expires_at: string;
                    summary: string | null;
                    evidence_refs: components["schemas"]["EvidenceRef"][];
                    command_id: string;
                    operation_id: string | null;
                }[];
                next_page_token: string | null;
                prev_page_token: string | null;
            };
            health_revision: number;
            as_of: components["schemas"]["ReadAsOf"];
        };
        HeldLease: {
            resource_id: string;
            mode: string;
            /** @description RFC 3339, UTC, microseconds. */
            since: string;
        };
        HookDeliveryView: {
            /** @enum {unknown} */
            status: "accepted" | "duplicate" | "ignored";
            detail: string | null;
        };
        HookSecretView: {
            /** Format: uuid */
            schedule_id: string;
            url: string;
            /** @description Shown only here. */
            secret: string;
            previous_until: string | null;
        };
        /** @description Where and how a webhook comes to this schedule. */
        HookView: {
            url: string;
            /** @description False: no secret exists yet. */
            has_secret: boolean;
            previous_until: string | null;
            /** @description The last ten deliveries with a valid signature, newest first. */
            deliveries: {
                /** @description RFC 3339, UTC, microseconds. */
                at: string;
                status: ("accepted" | "ignored") | null;
                detail: string | null;
            }[];
        };
        IdentityProviderList: {
            items: {
                id: string;
                title: string;
            }[];
            /**
             * @description Whose password signs in; break_glass: emergency accounts.
             * @enum {unknown}
             */
            passwords: "all" | "break_glass";
        };
        Impact: {
            resource_id: string;
            /** @description By effect (worst first), then distance, then id. */
            items: components["schemas"]["ImpactItem"][];
            counts: {
                /** @description All affected resources, including hidden ones. */
                total: number;
                /** @description Affected resources that you may not see. */
                hidden: number;
                by_effect: {
                    unhealthy: number;
                    degraded: number;
                };
                by_type: {
                    [key: string]: number;
                };
                by_health: {
                    [key: string]: number;
                };
            };
            truncated: {
                /** @description There are more items than `limit`. */
                items: boolean;
                /** @description The traversal stopped at its limit or at max_distance: counts are lower bounds. */
                visited: boolean;
            };
            as_of: components["schemas"]["ReadAsOf"];
        };
        ImpactItem: {
            resource_id: string;
            type_key: string;
            name: string;
            lifecycle_status: string;
            health_status: components["schemas"]["Health"];
            /**
             * @description The health that the resource would roll up to if the given one failed and all others were healthy.
             * @enum {unknown}
             */
            effect: "unhealthy" | "degraded";
            /** @description Steps from the resource. */
            distance: number;
            /** @description A shortest way from the resource to this one, which comes last. */
            path: {
                relationship_type: string;
                resource_id: string | null;
            }[];
        };
        ImportCounts: {
            created: number;
            updated: number;
            unchanged: number;
            conflict: number;
            refused: number;
            deferred: number;
        };
        /** @description Names its target by the id in the source, or by our own. */
        ImportEdge: {
            type_key: string;
            /** @enum {unknown} */
            direction?: "out" | "in";
            target_external_id?: string;
            /** @description Never changes. The server generates `res_…` if none is given. */
            target_id?: string;
            properties?: {
                [key: string]: unknown;
            };
        };
        ImportItem: {
            external_id: string;
            type_key: string;
            name: string;
            display_name?: string;
            parent_external_id?: string;
            /** @description Never changes. The server generates `res_…` if none is given. */
            parent_id?: string;
            labels?: components["schemas"]["Labels"];
            annotations?: components["schemas"]["Annotations"];
            owner?: string;
            lifecycle_status?: string;
            desired_state?: {
                [key: string]: unknown;
            };
            observed_state?: {
                [key: string]: unknown;
            };
            relationships?: components["schemas"]["ImportEdge"][];
            provided_capabilities?: components["schemas"]["CapabilityChange"][];
        };
        ImportJob: {
            job_id: string;
            /** @enum {unknown} */
            status: "queued" | "running" | "done" | "cancelled" | "failed";
            source: {
                kind: string;
                name: string;
            } & {
                [key: string]: unknown;
            };
            total: number;
            /** @description Items with a result. */
            done: number;
            counts: components["schemas"]["ImportCounts"];
            problem?: components["schemas"]["ImportProblem"];
            /** @description RFC 3339 in UTC with microseconds. */
            created_at: string;
            /** @description RFC 3339 in UTC with microseconds. */
            updated_at: string;
            ended_at: string | null;
        };
        ImportJobRequest: {
            source: components["schemas"]["ImportSource"];
            items: components["schemas"]["ImportItem"][];
            options?: components["schemas"]["ImportOptions"];
        };
        ImportOptions: {
            /** @description Adopts a resource with the same natural key, or the same type, parent and name. */
            adopt?: boolean;
            /** @description Outgoing edges of these types that an item does not list are removed. */
            complete_relationship_types?: string[];
            /** @description Edges that only this source states of an item are removed once the item no longer lists them. */
            complete_relationships?: boolean;
            /** @description Edges that leave an item, were stated before owners were stored and are not listed are removed. */
            unowned_relationships?: boolean;
            /** @description Labels, annotations and desired_state that this source set and an item does not list are removed. */
            complete_fields?: boolean;
            /** @description Takes over fields and properties of edges that others set. */
            force?: boolean;
        };
        ImportProblem: {
            category: string;
            code: string;
            detail: string;
        } & {
            [key: string]: unknown;
        };
        ImportReply: {
            results: components["schemas"]["ImportResult"][];
            counts: components["schemas"]["ImportCounts"];
        };
        ImportRequest: {
            source: components["schemas"]["ImportSource"];
            items: components["schemas"]["ImportItem"][];
            options?: components["schemas"]["ImportOptions"];
        };
        ImportResult: {
            index: number;
            external_id: string;
            /** @enum {unknown} */
            outcome: "created" | "updated" | "unchanged" | "conflict" | "refused" | "deferred";
            resource_id?: string;
            version?: number;
            diff: {
                path: string;
                before?: unknown;
                after?: unknown;
            }[];
            problem?: components["schemas"]["ImportProblem"];
        };
        ImportResults: {
            items: components["schemas"]["ImportResult"][];
            next_page_token: string | null;
        };
        ImportSource: {
            kind: string;
            /** @description Ids are unique in it. */
            name: string;
            file_digest?: string;
        };
        Inbox: {
            items: components["schemas"]["InboxItem"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        InboxItem: {
            gate_id: string;
            operation_id: string;
            operation_title: string;
            kind: string;
            question: string;
            status: components["schemas"]["GateStatusSchema"];
            round: number;
            guards: string[];
            policy: {
                [key: string]: unknown;
            };
            votes: components["schemas"]["VoteView"][];
            missing: components["schemas"]["MissingVotes"][];
            eligible: {
                id: string;
                name: string;
            }[];
            eligible_me: boolean;
            why_not_me: string | null;
            digest: string;
            waiting_since: string | null;
            deadline_at: string | null;
            on_timeout: string;
            on_reject: string;
            escalation: components["schemas"]["Escalation"];
            consumed_at: string | null;
            decided: components["schemas"]["GateDecision"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            risk: string;
            environment: string | null;
            change_counts: {
                added: number;
                changed: number;
                removed: number;
            };
            alone: components["schemas"]["AloneSchema"];
        };
        IntentBody: {
            /** @enum {unknown} */
            kind: "change" | "action" | "runbook" | "graph";
            title: string;
            /** @description Why; kept in history and audit. */
            reason: string;
            targets?: ({
                resource_id: string;
            } | {
                selector: {
                    type_key: string;
                    /** @description A CEL expression. */
                    when?: string;
                    limit?: number;
                };
            })[];
            labels?: {
                [key: string]: string;
            };
            ticket?: string;
            /** Format: uuid */
            retry_of?: string;
            expires_in_s?: number;
            constraints?: components["schemas"]["Constraints"];
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
            /** @description With dry_run: the effect also contains the plan, or why there is none. */
            preview?: boolean;
            change?: {
                /** @enum {unknown} */
                op: "update" | "create" | "delete";
                desired_state_patch?: {
                    [key: string]: unknown;
                };
                parameters?: {
                    [key: string]: unknown;
                };
            };
            action?: {
                action_key: string;
                parameters?: {
                    [key: string]: unknown;
                };
            };
            runbook?: {
                pack: string;
                procedure: string;
                /** @description The newest loaded version by default. */
                version?: string;
                parameters?: {
                    [key: string]: unknown;
                };
            };
            graph?: {
                nodes: components["schemas"]["GraphNode"][];
                gates?: components["schemas"]["GraphGate"][];
            };
        };
        IntentList: {
            items: components["schemas"]["IntentRow"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        IntentRow: {
            intent_id: string;
            /** @enum {unknown} */
            status: "open" | "previewed" | "executing" | "fulfilled" | "unfulfilled" | "expired";
            revision: number;
            kind: string;
            title: string;
            reason: string;
            requester: components["schemas"]["ActorSchema"];
            labels: {
                [key: string]: string;
            };
            constraints: {
                [key: string]: unknown;
            };
            ticket: string | null;
            retry_of: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            updated_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            latest_plan_id: string | null;
            operation_id: string | null;
            links: {
                [key: string]: string;
            };
            targets: number;
        };
        IntentView: {
            intent_id: string;
            /** @enum {unknown} */
            status: "open" | "previewed" | "executing" | "fulfilled" | "unfulfilled" | "expired";
            revision: number;
            kind: string;
            title: string;
            reason: string;
            targets_resolved: {
                resource_id: string;
                type_key: string;
                name: string;
                version: number;
            }[];
            request: {
                [key: string]: unknown;
            };
            requester: components["schemas"]["ActorSchema"];
            labels: {
                [key: string]: string;
            };
            constraints: {
                [key: string]: unknown;
            };
            ticket: string | null;
            retry_of: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            updated_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            latest_plan_id: string | null;
            operation_id: string | null;
            links: {
                [key: string]: string;
            };
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        InterventionBody: {
            /** @enum {unknown} */
            type: "skip" | "mark_succeeded" | "mark_failed" | "mark_compensated" | "set_output" | "set_input" | "trigger_compensation" | "extend_deadline" | "set_limits" | "release_leases" | "delegate_gate" | "override_freeze";
            node_id?: string;
            /** @description Exactly the fields that the type needs. */
            payload: {
                outputs?: {
                    [key: string]: unknown;
                };
                note?: string;
                message?: string;
                /** @description Merge patch on the plan's `with`; it stays until another one replaces it. Gates that approved other inputs ask again. */
                input_overrides?: {
                    [key: string]: unknown;
                };
                /** @enum {unknown} */
                of?: "operation" | "gate" | "attempt";
                /** @description The gate, or the node of the attempt. */
                id?: string;
                add_s?: number;
                max_parallel?: number;
                gate_id?: string;
                /** @description Id of a user. */
                to_user?: string;
                /** Format: date-time */
                until?: string;
                freeze_id?: string;
            };
            /** @description Why; kept in history and audit. */
            reason: string;
            ticket?: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        InterventionReply: {
            intervention: {
                intervention_id: string;
                type: string;
                node_id: string | null;
                /** @enum {unknown} */
                status: "applied" | "accepted" | "awaiting_second_person";
                gate_id: string | null;
            };
            command: components["schemas"]["CommandView"];
        };
        /** @description The public half of a signing key. */
        Jwk: {
            /** @enum {unknown} */
            kty: "OKP" | "EC" | "RSA";
            kid: string;
            /** @enum {unknown} */
            alg: "EdDSA" | "ES256" | "RS256";
            crv?: string;
            x?: string;
            y?: string;
            n?: string;
            e?: string;
            /** @constant */
            use?: "sig";
        };
        /** @description Short marks to filter by: `[prefix/]name`. */
        Labels: {
            [key: string]: string;
        };
        LastOperation: {
            operation_id: string;
            command_id: string;
            /** @description RFC 3339 in UTC with microseconds. */
            at: string;
        };
        Lifecycle: {
            states: string[];
            initial: string;
            terminal: string[];
            transitions: {
                from: string;
                to: string;
                by: ("user" | "operation" | "import")[];
            }[];
        };
        LocationReply: {
            location: string;
        };
        LogLineView: {
            seq: number;
            time: string;
            stream: string;
            level: string;
            text: string;
            cut?: boolean;
        };
        LogPage: {
            attempt: number;
            lines: components["schemas"]["LogLineView"][];
            first_seq: number | null;
            last_seq: number | null;
            total_lines: number;
            total_bytes: number;
            complete: boolean;
            /** @enum {unknown} */
            storage: "hot" | "archive";
            matches?: {
                count: number;
                seqs: number[];
            };
        };
        /** @enum {unknown} */
        MachinePermission: "catalog:read" | "operation:read" | "log:read" | "intent:create" | "patch:propose" | "plan:start" | "operation:control" | "operation:intervene" | "catalog:write" | "catalog:record" | "signal:send" | "identity:read" | "audit:read" | "scim:write";
        MachineToken: {
            access_token: string;
            /** @constant */
            token_type: "Bearer";
            expires_in: number;
            scope: string;
            issued_token_type?: string;
        };
        MachineView: {
            /** Format: uuid */
            id: string;
            username: string;
            /** @enum {unknown} */
            status: "ACTIVE" | "DISABLED" | "DELETED";
            roles: string[];
            owners: {
                /** Format: uuid */
                id: string;
                username: string;
                /** @enum {unknown} */
                status: "ACTIVE" | "DISABLED" | "DELETED";
            }[];
            credentials: components["schemas"]["CredentialView"][];
            /** Format: date-time */
            created_at: string;
        };
        Machines: {
            items: components["schemas"]["MachineView"][];
            next_page_token: string | null;
            /** Format: date-time */
            as_of: string;
        };
        MadeCredential: {
            credential: components["schemas"]["CredentialView"];
            /** @description The API key, shown only once: a repeated request does not return it. */
            key?: string;
        };
        ManagedField: {
            /** @description Pointer; "" stands for all fields that are not named. */
            path: string;
            owner: string;
            name: string;
            since: string | null;
        };
        Me: {
            user_id: string;
            username: string;
            roles: string[];
            permissions: string[];
            groups: string[];
            counts: {
                gates_mine: number;
                gates_all: number;
                patches_mine: number;
                failures_mine: number;
            };
            tickets: {
                url: string;
                pattern: string;
            } | null;
            version: string;
            degraded: string[];
        };
        Median: {
            median: number | null;
            samples: number;
        };
        MendedNode: {
            node_id: string;
            name: string;
            state: components["schemas"]["NodeStateSchema"];
            attempts: number;
            message: string | null;
        };
        MessageItem: {
            /** @enum {unknown} */
            event: "gate.waiting" | "gate.reopened" | "gate.escalated" | "patch.waiting" | "operation.held" | "operation.failed";
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            gate_id: string | null;
            patch_id: string | null;
            round: number;
            escalation: number;
            /** @description Absent if the installation sends minimal messages. */
            words?: {
                title: string;
                question: string | null;
                /** @description low, medium, high or critical. */
                risk: string;
                deadline_at: string | null;
            };
            /** @description Its page, which requires a sign-in. Opening it decides no gate. */
            link: string;
        };
        MissingVotes: {
            group: string | null;
            count: number;
        };
        NeedsGraph: {
            nodes: ({
                id: string;
                /** @constant */
                kind: "resource";
                resource_id: string;
                type_key: string;
                name: string;
                lifecycle_status: string;
                health_status: components["schemas"]["Health"];
                scope: components["schemas"]["Scope"];
            } | {
                id: string;
                /** @constant */
                kind: "capability";
                capability_key: string;
                title: string;
            } | {
                id: string;
                /** @constant */
                kind: "requirement";
                resource_id: string;
                requirement: components["schemas"]["Requirement"];
                /** @enum {unknown} */
                state: "bound" | "satisfiable" | "unsatisfied";
                /** @description The first 20 that do not match. */
                why_not: components["schemas"]["Rejection"][];
                rejected_count: {
                    [key: string]: number;
                };
            })[];
            edges: {
                /** @enum {unknown} */
                type: "provides" | "requires" | "satisfied_by";
                from: string;
                to: string;
                provider_id?: string;
                /** @enum {unknown} */
                status?: "available" | "degraded" | "stale" | "withdrawn";
                free?: number | null;
                /** @description satisfied_by: claimed already; false: would do. */
                bound?: boolean;
            }[];
            next_page_token: string | null;
            prev_page_token: string | null;
            as_of: components["schemas"]["ReadAsOf"];
        };
        NewCredential: {
            /** @enum {unknown} */
            kind: "key" | "jwk" | "trust";
            name: string;
            permissions: components["schemas"]["MachinePermission"][];
            scope?: components["schemas"]["GrantScope"];
            /** @description The networks it may be used from; none: anywhere. */
            networks?: string[];
            /** @default 90 */
            expires_in_days: number;
            jwk?: components["schemas"]["Jwk"];
            trust?: components["schemas"]["Trust"];
        };
        NewGrant: {
            role: components["schemas"]["RoleName"];
            scope?: components["schemas"]["GrantScope"];
            /** Format: date-time */
            expires_at?: string;
        };
        NewGroup: {
            group_key: string;
            name: string;
            description?: string;
        };
        NewMachine: {
            name: string;
            /** @description People who answer for it. */
            owners: string[];
        };
        NewSubjectGrant: {
            /** @enum {unknown} */
            subject_type: "user" | "group";
            subject_id: string;
            role: components["schemas"]["RoleName"];
            scope?: components["schemas"]["GrantScope"];
            /** Format: date-time */
            expires_at?: string;
        };
        NewUser: {
            username: string;
            grants?: components["schemas"]["NewGrant"][];
        };
        NewView: {
            /** @enum {unknown} */
            list: "inbox" | "operations" | "resources";
            name: string;
            filters: components["schemas"]["ViewFilters"];
            group?: string | null;
        };
        Node: {
            operation_id: string;
            node_id: string;
            name: string;
            kind: string;
            executor: string;
            target_id: string | null;
            group_id: string | null;
            state: components["schemas"]["NodeStateSchema"];
            generation: number;
            attempt: number;
            error_class: string | null;
            error_message: string | null;
            ready_at: string | null;
            gated_at: string | null;
            started_at: string | null;
            ended_at: string | null;
            waited_ms: number | null;
            ran_ms: number | null;
            progress: {
                [key: string]: unknown;
            } | null;
            artifacts: components["schemas"]["ArtifactView"][];
            log_lines: number;
            exception: string | null;
            held_by_patch: boolean;
            spec: {
                [key: string]: unknown;
            };
            inputs: components["schemas"]["NodeInputs"];
            outputs: {
                [key: string]: unknown;
            } | null;
            attempts: components["schemas"]["AttemptView"][];
            gates: components["schemas"]["NodeGate"][];
            catalog: {
                [key: string]: unknown;
            } | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        NodeGate: {
            gate_id: string;
            question: string;
            status: components["schemas"]["GateStatusSchema"];
        };
        NodeInputs: {
            effective: unknown;
            overridden: string[];
        };
        NodeList: {
            items: components["schemas"]["NodeSummary"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        /** @description A merge patch on the node; not on its id, kind, target or dependencies. */
        NodeMergePatch: {
            [key: string]: unknown;
        };
        NodeReply: {
            operation_id: string;
            node_id: string;
            name: string;
            kind: string;
            executor: string;
            target_id: string | null;
            group_id: string | null;
            state: components["schemas"]["NodeStateSchema"];
            generation: number;
            attempt: number;
            error_class: string | null;
            error_message: string | null;
            ready_at: string | null;
            gated_at: string | null;
            started_at: string | null;
            ended_at: string | null;
            waited_ms: number | null;
            ran_ms: number | null;
            progress: {
                [key: string]: unknown;
            } | null;
            artifacts: components["schemas"]["ArtifactView"][];
            log_lines: number;
            exception: string | null;
            held_by_patch: boolean;
            spec: {
                [key: string]: unknown;
            };
            inputs: components["schemas"]["NodeInputs"];
            outputs: {
                [key: string]: unknown;
            } | null;
            attempts: components["schemas"]["AttemptView"][];
            gates: components["schemas"]["NodeGate"][];
            catalog: {
                [key: string]: unknown;
            } | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            reset_cone: string[];
            rearmed_gates: string[];
            command: components["schemas"]["CommandView"];
        };
        NodeSignal: {
            name: string;
            payload?: {
                [key: string]: unknown;
            };
        };
        /** @enum {unknown} */
        NodeStateSchema: "pending" | "gated" | "ready" | "dispatched" | "running" | "backoff" | "succeeded" | "failed" | "outcome_unknown" | "skipped" | "cancelled" | "compensating" | "compensated" | "compensation_failed" | "removed";
        NodeSummary: {
            operation_id: string;
            node_id: string;
            name: string;
            kind: string;
            executor: string;
            target_id: string | null;
            group_id: string | null;
            state: components["schemas"]["NodeStateSchema"];
            generation: number;
            attempt: number;
            error_class: string | null;
            error_message: string | null;
            ready_at: string | null;
            gated_at: string | null;
            started_at: string | null;
            ended_at: string | null;
            waited_ms: number | null;
            ran_ms: number | null;
            progress: {
                [key: string]: unknown;
            } | null;
            artifacts: number;
            log_lines: number;
            exception: string | null;
            held_by_patch: boolean;
        };
        Notice: {
            /** @enum {unknown} */
            event: "gate.waiting" | "gate.reopened" | "gate.escalated" | "patch.waiting" | "operation.held" | "operation.failed";
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            gate_id: string | null;
            patch_id: string | null;
            round: number;
            escalation: number;
        };
        NotifyRules: {
            /** @description The events that are sent at all. */
            events: ("gate.waiting" | "gate.reopened" | "gate.escalated" | "patch.waiting" | "operation.held" | "operation.failed")[];
            /** @enum {unknown} */
            min_risk: "low" | "medium" | "high" | "critical";
            steps: components["schemas"]["NotifySteps"];
            quiet: components["schemas"]["Quiet"] | null;
            /** @description The minimum time between two messages to a destination; the next one covers all events until then. */
            digest_s: number;
        };
        /** @description Which destinations are notified when. Empty: every active destination, at once. */
        NotifySteps: {
            /** Format: uuid */
            destination_id: string;
            /** @description If it still waits after this time. */
            after_s: number;
        }[];
        OpenFailure: {
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            operation_title: string;
            mine: boolean;
            /** @description How many nodes failed and hold the operation. */
            node_count: number;
            nodes: {
                node_id: string;
                name: string;
                state: string;
                message: string | null;
            }[];
            /** @description RFC 3339, UTC, microseconds. */
            waiting_since: string;
        };
        OpenGate: {
            gate_id: string;
            question: string;
            status: components["schemas"]["GateStatusSchema"];
            round: number;
            waiting_since: string | null;
            deadline_at: string | null;
        };
        OpenPatch: {
            patch_id: string;
            proposer: components["schemas"]["ActorSchema"];
            reason: string;
            base_revision: number;
            held_nodes: string[];
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
        };
        Operation: {
            operation_id: string;
            intent_id: string;
            plan_id: string;
            title: string;
            kind: string;
            status: components["schemas"]["OperationStatusSchema"];
            pause_reason: string | null;
            end_reason: string | null;
            blocked_on: components["schemas"]["BlockedOnSchema"][];
            progress: components["schemas"]["Progress"];
            requester: components["schemas"]["ActorSchema"];
            risk_level: string;
            environment: string | null;
            labels: {
                [key: string]: string;
            };
            ticket: string | null;
            /** @description Gates that wait for a decision now. */
            open_gates: components["schemas"]["OpenGate"][];
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            started_at: string | null;
            ended_at: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            updated_at: string;
            eta_at: string | null;
            revision: number;
            change_seq: number;
            plan_revision: number;
            plan_hash: string;
            /** @enum {unknown} */
            control: "run" | "pause" | "cancel";
            cancel_mode: string | null;
            resource_ids: string[];
            /** @description At most 100, by resource. */
            leases: components["schemas"]["HeldLease"][];
            /** @description Patches that wait for a decision now. */
            open_patches: components["schemas"]["OpenPatch"][];
            pending_commands: components["schemas"]["CommandView"][];
            steering: components["schemas"]["Steering"] | null;
            constraints: {
                [key: string]: unknown;
            };
            deadline_at: string | null;
            max_parallel: number;
            exceptions: unknown[];
            evidence_head: {
                seq: number;
                hash: string;
            };
            retry_of: string | null;
            engine_ref?: components["schemas"]["EngineRef"];
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        OperationGraph: {
            plan_revision: number;
            plan_hash: string;
            nodes: {
                node_id: string;
                name: string;
                kind: string;
                executor: string;
                target_id: string | null;
                group: string | null;
                state: components["schemas"]["NodeStateSchema"];
                attempt: number;
                generation: number;
                depends_on: string[];
                join: string;
                gates: string[];
                risk: number;
                on_failure: string;
                has_compensation: boolean;
                estimate_s: number;
                held_by_patch: boolean;
                exception: string | null;
                ran_ms: number | null;
            }[];
            groups: {
                group_id: string;
                name: string;
                kind: string;
                counts: {
                    [key: string]: number;
                };
            }[];
            gates: {
                gate_id: string;
                question: string;
                guards: string[];
                state: components["schemas"]["GateStatusSchema"];
            }[];
            critical_path: string[];
            change_seq: number;
            /** @description RFC 3339, UTC, microseconds. */
            as_of: string;
        };
        OperationList: {
            items: components["schemas"]["OperationSummary"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        OperationRef: {
            /** @constant */
            kind: "intent";
            intent_id: string;
            href: string;
            plan_preview_href: string;
            status_href: string;
            operation_id: null;
        };
        OperationReply: {
            operation_id: string;
            intent_id: string;
            plan_id: string;
            title: string;
            kind: string;
            status: components["schemas"]["OperationStatusSchema"];
            pause_reason: string | null;
            end_reason: string | null;
            blocked_on: components["schemas"]["BlockedOnSchema"][];
            progress: components["schemas"]["Progress"];
            requester: components["schemas"]["ActorSchema"];
            risk_level: string;
            environment: string | null;
            labels: {
                [key: string]: string;
            };
            ticket: string | null;
            /** @description Gates that wait for a decision now. */
            open_gates: components["schemas"]["OpenGate"][];
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            started_at: string | null;
            ended_at: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            updated_at: string;
            eta_at: string | null;
            revision: number;
            change_seq: number;
            plan_revision: number;
            plan_hash: string;
            /** @enum {unknown} */
            control: "run" | "pause" | "cancel";
            cancel_mode: string | null;
            resource_ids: string[];
            /** @description At most 100, by resource. */
            leases: components["schemas"]["HeldLease"][];
            /** @description Patches that wait for a decision now. */
            open_patches: components["schemas"]["OpenPatch"][];
            pending_commands: components["schemas"]["CommandView"][];
            steering: components["schemas"]["Steering"] | null;
            constraints: {
                [key: string]: unknown;
            };
            deadline_at: string | null;
            max_parallel: number;
            exceptions: unknown[];
            evidence_head: {
                seq: number;
                hash: string;
            };
            retry_of: string | null;
            engine_ref?: components["schemas"]["EngineRef"];
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            command: components["schemas"]["CommandView"];
        };
        /** @enum {unknown} */
        OperationStatusSchema: "queued" | "running" | "blocked" | "pausing" | "paused" | "cancelling" | "succeeded" | "succeeded_with_exceptions" | "failed" | "cancelled" | "timed_out";
        OperationSummary: {
            operation_id: string;
            intent_id: string;
            plan_id: string;
            title: string;
            kind: string;
            status: components["schemas"]["OperationStatusSchema"];
            pause_reason: string | null;
            end_reason: string | null;
            blocked_on: components["schemas"]["BlockedOnSchema"][];
            progress: components["schemas"]["Progress"];
            requester: components["schemas"]["ActorSchema"];
            risk_level: string;
            environment: string | null;
            labels: {
                [key: string]: string;
            };
            ticket: string | null;
            open_gates: number;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            started_at: string | null;
            ended_at: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            updated_at: string;
            eta_at: string | null;
            revision: number;
            change_seq: number;
        };
        OperationsSummary: {
            counts: {
                [key: string]: number;
            };
            last: {
                operation_id: string;
                kind: string;
                title: string;
                status: string;
                started_at: string | null;
                ended_at: string | null;
                version_from: number | null;
                version_to: number | null;
            }[];
            as_of: components["schemas"]["ReadAsOf"];
        };
        Overview: {
            now: {
                /** @description Operations that have not ended. */
                open: number;
                /** @description Of these, those that wait for people or have failed nodes. */
                needs_attention: number;
            };
            /** @description Of the 1,000 newest open operations, by their first 50 targets; regions without one are left out. */
            regions: {
                region_id: string;
                /** @description Operations with a target there that have not ended. */
                open: number;
                needs_attention: number;
                /** @description Gates of these operations that wait for people. */
                gates: number;
            }[];
            /** @description Every day of the period, by the day on which operations ended. */
            days: {
                day: string;
                /** @description With and without exceptions. */
                succeeded: number;
                /** @description Failed or timed out. */
                failed: number;
                cancelled: number;
            }[];
            period: components["schemas"]["OverviewPeriod"];
            before: components["schemas"]["OverviewPeriod"];
            /** @description Of the next 14 days, the first 200. */
            planned: components["schemas"]["PlannedTick"][];
            /** @description More items are planned than are listed. */
            planned_more: boolean;
            as_of: components["schemas"]["AsOf"];
        };
        OverviewPeriod: {
            /** @description RFC 3339, UTC, microseconds. */
            from: string;
            /** @description RFC 3339, UTC, microseconds. */
            to: string;
            /** @description With and without exceptions. */
            succeeded: number;
            /** @description Failed or timed out. */
            failed: number;
            cancelled: number;
            duration: components["schemas"]["Spread"];
            approval: components["schemas"]["Spread"];
        };
        OwnHealth: {
            status: components["schemas"]["Health"];
            reason: string;
            /** @description RFC 3339 in UTC with microseconds. */
            since: string;
            expires_at: string | null;
        };
        PackList: {
            items: components["schemas"]["PackView"][];
        };
        PackView: {
            pack: string;
            version: string;
            digest: string;
            /**
             * @description New plans take the procedures of the current version. One that is loaded can be named. One that is retired is known from a time before; running operations hold their own copy.
             * @enum {unknown}
             */
            status: "current" | "loaded" | "retired";
            loaded_at: string | null;
            /** @description None of a version that is retired. */
            procedures: {
                key: string;
                /** @enum {unknown} */
                kind: "change" | "action" | "runbook";
                title: string;
                resource_type: string | null;
                steps: components["schemas"]["ProcedureStep"][];
                /** @description The gate policies that it asks. */
                gates: string[];
            }[];
            used_by: {
                /** @description Operations of its plans that have not ended. */
                operations: number;
                /** @description Schedules of its runbooks that have not ended; of the current version. */
                schedules: number;
            };
        };
        PageCount: {
            value: number;
            /** @enum {unknown} */
            relation: "eq" | "gte";
        };
        PasskeyChallenge: {
            challenge: string;
            rp_id: string;
            expires_in: number;
        };
        PasskeyList: {
            items: components["schemas"]["PasskeyView"][];
        };
        PasskeyView: {
            id: string;
            credential_id: string;
            name: string;
            created_at: string;
            last_used_at: string | null;
            /** @description Kept by its provider, on several devices. */
            backed_up: boolean;
        };
        Patch: {
            /** Format: uuid */
            patch_id: string;
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            /** @enum {unknown} */
            status: "awaiting_approval" | "approved" | "applied" | "rejected" | "not_applicable" | "expired" | "withdrawn";
            status_reason: string | null;
            base_revision: number;
            applied_revision: number | null;
            changes: {
                [key: string]: unknown;
            }[];
            reason: string;
            ticket: string | null;
            proposer: components["schemas"]["ActorSchema"];
            asked: components["schemas"]["PatchAsked"] | null;
            digest: string;
            result_hash: string;
            diff_graph: components["schemas"]["GraphDifference"];
            violations: components["schemas"]["PatchViolation"][];
            held_nodes: string[];
            rearmed_gates: string[];
            required: components["schemas"]["PatchApproval"];
            votes: components["schemas"]["PatchVote"][];
            decided: components["schemas"]["PatchDecision"] | null;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            rebase: components["schemas"]["PatchRebase"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        PatchApproval: {
            quorum: number;
            groups: {
                group: string;
                min: number;
            }[];
            policies: string[];
            four_eyes: boolean;
            /** @description An approval needs a comment. */
            comment_on_approve: boolean;
            signature: string | null;
        };
        /** @description Who proposes it and why, as the digest covers it; null if an older build took the proposal. */
        PatchAsked: {
            proposer: {
                /** @enum {unknown} */
                kind: "user" | "service" | "executor" | "engine" | "system";
                id: string;
                name: string;
            };
            reason: string;
            ticket: string | null;
        };
        PatchChange: {
            /** @constant */
            op: "add_node";
            node: components["schemas"]["GraphNode"];
        } | {
            /** @constant */
            op: "remove_node";
            node_id: string;
        } | {
            /** @constant */
            op: "update_node";
            node_id: string;
            set: components["schemas"]["NodeMergePatch"];
        } | {
            /** @constant */
            op: "add_dependency";
            node_id: string;
            depends_on: string;
        } | {
            /** @constant */
            op: "remove_dependency";
            node_id: string;
            depends_on: string;
        } | {
            /** @constant */
            op: "add_gate";
            gate: components["schemas"]["GraphGate"];
        } | {
            /** @constant */
            op: "remove_gate";
            gate_id: string;
        } | {
            /** @constant */
            op: "set_limits";
            max_parallel: number;
        };
        PatchDecision: {
            by: components["schemas"]["ActorSchema"];
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
        };
        PatchDetail: {
            /** Format: uuid */
            patch_id: string;
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            /** @enum {unknown} */
            status: "awaiting_approval" | "approved" | "applied" | "rejected" | "not_applicable" | "expired" | "withdrawn";
            status_reason: string | null;
            base_revision: number;
            applied_revision: number | null;
            changes: {
                [key: string]: unknown;
            }[];
            reason: string;
            ticket: string | null;
            proposer: components["schemas"]["ActorSchema"];
            asked: components["schemas"]["PatchAsked"] | null;
            digest: string;
            result_hash: string;
            diff_graph: components["schemas"]["GraphDifference"];
            violations: components["schemas"]["PatchViolation"][];
            held_nodes: string[];
            rearmed_gates: string[];
            required: components["schemas"]["PatchApproval"];
            votes: components["schemas"]["PatchVote"][];
            decided: components["schemas"]["PatchDecision"] | null;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            rebase: components["schemas"]["PatchRebase"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            /** @description The failures that it mends, in their current state. */
            mends: components["schemas"]["MendedNode"][];
        };
        PatchList: {
            items: components["schemas"]["Patch"][];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        PatchOperation: {
            /** @enum {unknown} */
            op: "add" | "remove" | "replace" | "move" | "copy" | "test";
            path: string;
            /** @description A pointer; read by move and copy. */
            from?: unknown;
            value?: unknown;
        };
        /** @description The same changes against the current graph, if they are still sound: propose them again. */
        PatchRebase: {
            base_revision: number;
            changes: {
                [key: string]: unknown;
            }[];
        };
        PatchReply: {
            /** Format: uuid */
            patch_id: string;
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            /** @enum {unknown} */
            status: "awaiting_approval" | "approved" | "applied" | "rejected" | "not_applicable" | "expired" | "withdrawn";
            status_reason: string | null;
            base_revision: number;
            applied_revision: number | null;
            changes: {
                [key: string]: unknown;
            }[];
            reason: string;
            ticket: string | null;
            proposer: components["schemas"]["ActorSchema"];
            asked: components["schemas"]["PatchAsked"] | null;
            digest: string;
            result_hash: string;
            diff_graph: components["schemas"]["GraphDifference"];
            violations: components["schemas"]["PatchViolation"][];
            held_nodes: string[];
            rearmed_gates: string[];
            required: components["schemas"]["PatchApproval"];
            votes: components["schemas"]["PatchVote"][];
            decided: components["schemas"]["PatchDecision"] | null;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            rebase: components["schemas"]["PatchRebase"] | null;
            change_seq: number;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
            operation_status: components["schemas"]["OperationStatusSchema"];
            command: components["schemas"]["CommandView"];
        };
        PatchViolation: {
            pointer: string;
            code: string;
            message: string;
        };
        PatchVote: {
            actor: components["schemas"]["ActorSchema"];
            /** @enum {unknown} */
            decision: "approve" | "reject";
            comment: string | null;
            digest: string;
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
        };
        PauseBody: {
            /** @description Why; kept in history and audit. */
            reason: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        Payloads: {
            payloads: {
                metadata?: {
                    [key: string]: string;
                };
                /** @description The bytes. */
                data?: string;
            }[];
        };
        Pending: {
            change: components["schemas"]["PendingChange"];
        };
        /** @description A change that waits for a second administrator. */
        PendingChange: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["ChangeKind"];
            digest: string;
            /** Format: uuid */
            requested_by: string;
            /** Format: date-time */
            expires_at: string;
        };
        PendingCredential: {
            change: components["schemas"]["PendingChange"];
            /** @description The API key, shown only once: a repeated request does not return it. */
            key?: string;
        };
        PlaceCounts: {
            resources: number;
            by_health: {
                [key: string]: number;
            };
            by_lifecycle: {
                [key: string]: number;
            };
        };
        PlanView: {
            plan_id: string;
            intent_id: string;
            title: string;
            kind: string;
            /** @enum {unknown} */
            status: "ready" | "blocked_by_policy" | "locked" | "started" | "superseded" | "stale" | "expired";
            status_reason: string | null;
            plan_hash: string;
            semantic_digest: string;
            catalog_pins: {
                resource_id: string;
                version: number;
            }[];
            pins_moved: {
                resource_id: string;
                planned: number;
                current: number | null;
            }[];
            watermark: string;
            packs: {
                pack: string;
                version: string;
                digest: string;
            }[];
            counts: {
                [key: string]: number;
            };
            /** @description At most 200; continue with diff_after. */
            diff: {
                resource_id: string;
                name: string;
                /** @enum {unknown} */
                change: "create" | "update" | "replace" | "delete" | "no_change" | "unknown";
                fields: {
                    path: string;
                    before: unknown;
                    after: unknown;
                    sensitive: boolean;
                    noise: boolean;
                }[];
            }[];
            diff_next: string | null;
            impact: {
                dependents: string[];
                dependents_count: number;
                compensable: boolean;
                affected: components["schemas"]["Affected"] | null;
            };
            risk: components["schemas"]["Risk"];
            conflicts: {
                kind: string;
                id: string;
                resource_id: string | null;
                message: string;
            }[];
            policy_results: {
                policy_id: string;
                /** @enum {unknown} */
                level: "hard" | "soft" | "advisory";
                /** @enum {unknown} */
                result: "passed" | "forbids";
                detail: string;
            }[];
            gates: {
                gate_id: string;
                kind: string;
                question: string;
                policy: {
                    [key: string]: unknown;
                };
                guards: string[];
                /** @description Groups that may decide; empty: everyone with gate:decide. */
                who: string[];
                can_i: boolean;
            }[];
            warnings: {
                code: string;
                message: string;
                values?: components["schemas"]["TextValues"];
            }[];
            estimates: {
                p50_s: number;
                p90_s: number;
                critical_path: string[];
            };
            leases: {
                resource_id: string;
                mode: string;
            }[];
            windows: string[];
            constraints: {
                [key: string]: unknown;
            };
            rehearsal: components["schemas"]["Rehearsal"] | null;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            expires_at: string;
            operation_id: string | null;
            superseded_by: string | null;
            superseded_plan_id?: string | null;
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        PlannedTick: {
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
            /**
             * @description A schedule runs; an operation must have ended; a gate must be decided.
             * @enum {unknown}
             */
            kind: "schedule" | "operation" | "gate";
            title: string;
            schedule_id: string | null;
            operation_id: string | null;
            gate_id: string | null;
        };
        Preferences: {
            /** @enum {unknown} */
            theme?: "system" | "light" | "dark";
            /** @enum {unknown} */
            contrast?: "system" | "more";
            /** @enum {unknown} */
            density?: "comfortable" | "compact";
            /** @enum {unknown} */
            times?: "relative" | "exact";
            /** @description utc, local (the zone of the device), or an IANA time zone. */
            zone?: string;
            /** @enum {unknown} */
            language?: "en" | "de";
            /** @description Whether single keys are shortcuts. */
            shortcuts?: boolean;
            /** @description Whether the inbox shows the guide of newcomers. */
            guide?: boolean;
        };
        PreviewBody: {
            exclude_targets?: string[];
            /** @description Position in the catalog's log that the plan must know. */
            min_watermark?: string;
            /** @description Runs the plan on a virtual clock and stores the result with the plan. Gates are approved after approval_delay_s (0 by default; null: never). */
            rehearse?: {
                /** @description 1 unless said. */
                seed?: number;
                approval_delay_s?: number | null;
                failures?: {
                    node_id: string;
                    attempt: number;
                    /** @enum {unknown} */
                    class: "unreachable" | "remote_error" | "timeout" | "not_picked_up" | "condition_timeout" | "unexpected_response" | "refused" | "condition_failed" | "exit_code" | "outputs_invalid" | "expression_error" | "address_denied" | "secret_missing" | "outcome_unknown";
                    /** @description For the compensation of the node; by default for its run. */
                    undo?: boolean;
                }[];
            };
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        ProcedureList: {
            items: components["schemas"]["ProcedureView"][];
        };
        ProcedureStep: {
            id: string;
            name: string;
            executor: string;
        };
        ProcedureView: {
            pack: string;
            version: string;
            key: string;
            kind: string;
            title: string;
            scope: string;
            match: {
                [key: string]: unknown;
            };
            parameters: {
                [key: string]: unknown;
            };
            steps: components["schemas"]["ProcedureStep"][];
            gates: {
                [key: string]: unknown;
            }[];
        };
        Progress: {
            total: number;
            done: number;
            running: number;
            failed: number;
            waiting: number;
        };
        ProposeBody: {
            /** @description The plan_revision that you read. */
            base_revision: number;
            changes: components["schemas"]["PatchChange"][];
            /** @description Why; kept in history and audit. */
            reason: string;
            ticket?: string;
            expires_in_s?: number;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        Provider: {
            provider_id: string;
            resource_id: string;
            type_key: string;
            capability_key: string;
            version: string;
            attributes: {
                [key: string]: unknown;
            };
            capacity: {
                total: number | null;
                /** @description Sum of the claims: open uses_capability edges. */
                reserved: number;
                used: number | null;
                unit: string | null;
            } | null;
            free: number | null;
            /** @description More is claimed than exists. */
            overcommitted: boolean;
            /** @enum {unknown} */
            status: "available" | "degraded" | "stale" | "withdrawn";
            status_reason: string;
            priority: number;
            expires_at: string | null;
            last_command_id: string | null;
            rev: number;
            scope: components["schemas"]["Scope"];
            /** @description From near: 0 same segment, 1 data center, 2 region, 3 elsewhere. */
            distance?: number;
        };
        ProviderList: {
            items: components["schemas"]["Provider"][];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
            /** @description With explain: the first 20 that do not match. */
            rejected?: components["schemas"]["Rejection"][];
            /** @description Of all candidates, by rule. */
            rejected_count?: {
                [key: string]: number;
            };
        };
        ProviderTrial: {
            provider: string;
            /** @description The claims that count here; null if the answer itself was refused. */
            claims: {
                subject: string;
                /** @description The claim that names a new account. */
                username: string | null;
                /** @description Never finds an account. */
                email: string | null;
                email_verified: boolean;
                /** @description As the provider names them; null: it only says where they could be read, so rights stay. */
                groups: string[] | null;
                /** @description How the person proved who they are (RFC 8176). */
                methods: string[];
                /** @description When the person typed their credentials; null: not said. */
                auth_time: string | null;
                /** @description The id by which SCIM knows the person. */
                directory_id: string | null;
            } | null;
            /** @description Whether such a sign-in counts as two factors. */
            second_factor: boolean;
            /**
             * @description The account has signed in here before; its directory made it; it would be made; or there is none.
             * @enum {unknown}
             */
            outcome: "known" | "linked" | "created" | "refused";
            /** @description The name of the account. */
            account: string | null;
            /** @description The groups that the person would be in. */
            groups: string[];
            /** @description The roles that the person would have, here or there. */
            roles: string[];
            refusal: {
                code: string;
                detail: string;
            } | null;
        };
        ProviderView: {
            id: string;
            title: string;
            enabled: boolean;
            issuer: string;
            /** @description Accounts with an identity of this provider. */
            people: number;
            /** @description Whether a first sign-in creates an account. */
            creates_accounts: boolean;
            /** @description What a sign-in must show. Groups and claims are asked of new accounts only. */
            requires: {
                /**
                 * @description One of the groups, all claims, one of the domains, one of the methods (RFC 8176).
                 * @enum {unknown}
                 */
                kind: "group" | "claim" | "domain" | "method";
                value: string;
            }[];
            /** @description The highest role that the map may grant. */
            max_role: string;
            /** @description The longest life of its sessions, in seconds. */
            session_max_s: number;
            groups_claim: string | null;
            /** @description Groups of the provider, and the groups and roles that their members have here. */
            map: {
                name: string;
                groups: string[];
                roles: string[];
            }[];
            scim: {
                machine: string;
                /** @enum {unknown} */
                match: "sub" | "oid";
                /** @description People that the directory maintains. */
                people: number;
                /** @description Groups that the directory maintains. */
                groups: number;
                /** @description When the directory last changed one of them. */
                changed_at: string | null;
            } | null;
        };
        ProviderViews: {
            items: components["schemas"]["ProviderView"][];
            /** @description Why the file as it is now cannot be used; the providers listed stay in force. */
            fault: string | null;
        };
        PushBody: {
            name: string;
            /** @description The browser's push endpoint. Later only its origin is shown. */
            endpoint: string;
            keys: {
                p256dh: string;
                auth: string;
            };
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        PushView: {
            public_key: string | null;
            destination: components["schemas"]["DestinationView"] | null;
        };
        Quiet: {
            /** @description An IANA time zone, through its daylight saving. */
            timezone: string;
            from: string;
            to: string;
            /** @description The days on which they begin; left out: every day. */
            days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
        };
        ReadAsOf: {
            /** @description The last event that the answer includes. */
            watermark: string;
            /** @description RFC 3339 in UTC with microseconds. */
            time: string;
            lag_ms: number;
        };
        Reason: {
            reason: string;
        };
        Rehearsal: {
            seed: number;
            approval_delay_s: number | null;
            failures: {
                node_id: string;
                attempt: number;
                class: string;
                undo?: boolean;
            }[];
            /**
             * @description How it ends; blocked or paused: it waits for a person.
             * @enum {unknown}
             */
            ends: "succeeded" | "succeeded_with_exceptions" | "failed" | "cancelled" | "timed_out" | "blocked" | "paused";
            /** @description Seconds since the start. */
            duration_s: number;
            critical_path: string[];
            gates: {
                gate_id: string;
                status: components["schemas"]["GateStatusSchema"];
                at: number | null;
                decided_at: number | null;
                escalations: {
                    /** @description Seconds since the start. */
                    at: number;
                    add_groups: string[];
                }[];
            }[];
            /** @description When each node runs, by start time; at most 1000. */
            lanes: {
                node_id: string;
                /** @description Seconds since the start. */
                from_s: number;
                /** @description Seconds since the start. */
                to_s: number;
                /** @description 0: a wait, which has no attempts. */
                attempt: number;
                undo: boolean;
                failure: string | null;
            }[];
            lanes_count: number;
            /** @description Nodes that are undone, in that order. */
            compensations: string[];
            warnings: {
                code: string;
                message: string;
            }[];
        };
        RejectBody: {
            /** @description The round that you decide. */
            round: number;
            comment: string;
            batch?: components["schemas"]["Batch"];
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        RejectPatchBody: {
            comment: string;
            batch?: components["schemas"]["Batch"];
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        Rejection: {
            provider_id: string;
            resource_id: string;
            /** @enum {unknown} */
            rule: "status" | "version" | "scope" | "attribute" | "capacity" | "self";
            attribute?: string;
            match_rule?: string;
            wanted: unknown;
            offered: unknown;
        };
        RelationshipInput: {
            type_key: string;
            /** @enum {unknown} */
            direction?: "out" | "in";
            target_id: string;
            properties?: {
                [key: string]: unknown;
            };
        };
        RelationshipItem: {
            relationship: {
                relationship_id: string;
                rev: number;
                type_key: string;
                from_id: string;
                to_id: string;
                properties: {
                    [key: string]: unknown;
                };
                /** @description RFC 3339 in UTC with microseconds. */
                valid_from: string;
            };
            /** @enum {unknown} */
            direction: "out" | "in";
            peer: {
                resource_id: string;
                type_key: string;
                name: string;
                lifecycle_status: string;
                health_status: components["schemas"]["Health"];
            };
        };
        RelationshipList: {
            items: components["schemas"]["RelationshipItem"][];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
        };
        RelationshipRule: {
            type_key: string;
            /** @enum {unknown} */
            direction: "out" | "in";
            peer_types: string[];
            min: number;
            /** @description null: no separate limit. */
            max: number | null;
        };
        /** @description As the type demands, with values of the resource filled in. */
        Requirement: {
            requirement_key: string;
            capability_key: string;
            version_range: string;
            where: {
                [key: string]: unknown;
            };
            amount: number | null;
            min: number;
            /** @enum {unknown} */
            scope: "any" | "same_region" | "same_datacenter" | "same_segment";
        };
        RequirementCounts: {
            total: number;
            bound: number;
            satisfiable: number;
            unsatisfied: number;
        };
        ResourceCapabilities: {
            provided: components["schemas"]["Provider"][];
            required: {
                requirement: components["schemas"]["Requirement"];
                /** @enum {unknown} */
                state: "bound" | "satisfiable" | "unsatisfied";
                bound_to: {
                    relationship_id: string;
                    resource_id: string;
                    provider_id: string | null;
                    amount: number | null;
                }[];
                /** @description The first 5 that match. */
                providers: components["schemas"]["Provider"][];
                /** @description The first 20 that do not match. */
                why_not: components["schemas"]["Rejection"][];
                /** @description Of all candidates, by rule. */
                rejected_count: {
                    [key: string]: number;
                };
            }[];
            as_of: components["schemas"]["ReadAsOf"];
        };
        ResourceCreate: {
            /** @description Never changes. The server generates `res_…` if none is given. */
            resource_id?: string;
            type_key: string;
            name: string;
            display_name?: string;
            labels?: components["schemas"]["Labels"];
            annotations?: components["schemas"]["Annotations"];
            owner?: string;
            parent_id?: string;
            /** @description At most 256 KiB and 20 levels; one text in it at most 65,536 characters as spelled in JSON. No null, no integer beyond 2^53-1. */
            desired_state?: {
                [key: string]: unknown;
            };
            relationships?: components["schemas"]["RelationshipInput"][];
            /** @description Only with mode=record_only. */
            lifecycle_status?: string;
            /** @description At most 256 KiB and 20 levels; one text in it at most 65,536 characters as spelled in JSON. No null, no integer beyond 2^53-1. */
            observed_state?: {
                [key: string]: unknown;
            };
        };
        ResourceGraphNode: {
            resource_id: string;
            type_key: string;
            name: string;
            lifecycle_status: string;
            health_status: components["schemas"]["Health"];
            rollup_status?: components["schemas"]["Health"];
            depth: number;
            /** @description Open edges of the allowed types to resources that the caller may see. */
            degree: number;
        };
        ResourceItem: {
            resource_id: string;
            type_key: string;
            type_version: number;
            name: string;
            display_name: string;
            owner: string | null;
            labels: {
                [key: string]: string;
            };
            parent_id: string | null;
            lifecycle_status: string;
            health_status: components["schemas"]["Health"];
            scope: components["schemas"]["Scope"];
            /** @description Counts decided changes; health never changes it. */
            version: number;
            health_revision: number;
            /** @description Grows when desired_state really changes. */
            generation: number;
            /** @description The generation that observed_state was written for; 0 = never. */
            observed_generation: number;
            drift: components["schemas"]["Drift"];
            last_operation: components["schemas"]["LastOperation"] | null;
            /** @description RFC 3339 in UTC with microseconds. */
            created_at: string;
            /** @description `user:<uuid>` or `svc:<name>`. */
            created_by: string;
            /** @description RFC 3339 in UTC with microseconds. */
            updated_at: string;
            updated_by: string;
            change_token: string;
            annotations?: {
                [key: string]: string;
            };
            desired_state?: {
                [key: string]: unknown;
            };
            observed_state?: {
                [key: string]: unknown;
            };
            conditions?: components["schemas"]["Condition"][];
            health?: components["schemas"]["OwnHealth"];
            /** @description Open edges to resources that the caller may see. */
            relationships?: {
                out: number;
                in: number;
            };
            capabilities?: components["schemas"]["CapabilityCounts"];
            /** @description Managers by pointer: the nearest pointer above a field names who set it last; "" holds for the rest. */
            field_owners?: {
                [key: string]: string;
            };
            /** @description The same with names and times; by include=owners, of one resource. */
            managed_fields?: components["schemas"]["ManagedField"][];
            /** @description True when an older version was asked for. */
            historical?: boolean;
        };
        ResourceList: {
            items: components["schemas"]["ResourceItem"][];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
        };
        ResourcePatch: {
            [key: string]: unknown;
        } | components["schemas"]["PatchOperation"][];
        ResourceType: {
            type_key: string;
            version: number;
            pack: string;
            pack_version: string;
            title: string;
            /** @description The name of a lucide icon. */
            icon?: string;
            /** @description Only a base for others: no resource can have it. */
            abstract: boolean;
            derived_from: string | null;
            /** @description All bases, the nearest first. */
            ancestors: string[];
            /** @enum {unknown} */
            status: "active" | "deprecated";
            /**
             * @description operation: changes of desired_state become intents; record: they are written at once.
             * @enum {unknown}
             */
            writes: "operation" | "record";
            lifecycle: components["schemas"]["Lifecycle"];
            desired_state_schema: {
                [key: string]: unknown;
            };
            observed_state_schema: {
                [key: string]: unknown;
            };
            field_classes: {
                immutable: string[];
                read_only: string[];
                /** @description Pointers to fields that hold a secret reference only. */
                sensitive: string[];
            };
            identity: string[];
            drift_paths: string[];
            indexed_paths: string[];
            relationships: components["schemas"]["RelationshipRule"][];
            provides: {
                capability_key: string;
                version_range: string;
            }[];
            requires: ({
                requirement_key: string;
                capability_key: string;
                version_range: string;
                min: number;
                /** @enum {unknown} */
                scope: "any" | "same_region" | "same_datacenter" | "same_segment";
            } & {
                [key: string]: unknown;
            })[];
            actions: components["schemas"]["Action"][];
            health: {
                default_ttl_s: number | null;
                metrics?: components["schemas"]["HealthMetric"][];
            };
            checksum: string;
        };
        ResourceView: {
            resource_id: string;
            type_key: string;
            type_version: number;
            name: string;
            display_name: string;
            owner: string | null;
            labels: {
                [key: string]: string;
            };
            parent_id: string | null;
            lifecycle_status: string;
            health_status: components["schemas"]["Health"];
            scope: components["schemas"]["Scope"];
            annotations: {
                [key: string]: string;
            };
            desired_state: {
                [key: string]: unknown;
            };
            observed_state: {
                [key: string]: unknown;
            };
            /** @description Counts decided changes; health never changes it. */
            version: number;
            health_revision: number;
            /** @description Grows when desired_state really changes. */
            generation: number;
            /** @description The generation that observed_state was written for; 0 = never. */
            observed_generation: number;
            drift: components["schemas"]["Drift"];
            last_operation: components["schemas"]["LastOperation"] | null;
            /** @description RFC 3339 in UTC with microseconds. */
            created_at: string;
            /** @description `user:<uuid>` or `svc:<name>`. */
            created_by: string;
            /** @description RFC 3339 in UTC with microseconds. */
            updated_at: string;
            updated_by: string;
            conditions: components["schemas"]["Condition"][];
            /** @description Names this write, for min_change. */
            change_token: string;
            health?: components["schemas"]["OwnHealth"];
            /** @description Open edges to resources that the caller may see. */
            relationships?: {
                out: number;
                in: number;
            };
            capabilities?: components["schemas"]["CapabilityCounts"];
            /** @description Managers by pointer: the nearest pointer above a field names who set it last; "" holds for the rest. */
            field_owners?: {
                [key: string]: string;
            };
            /** @description The same with names and times; by include=owners, of one resource. */
            managed_fields?: components["schemas"]["ManagedField"][];
            /** @description True when an older version was asked for. */
            historical?: boolean;
        };
        ResumeBody: {
            /** @description Why; kept in history and audit. */
            reason: string;
            /** @description Take the new values of targets that have changed. */
            acknowledge_drift?: boolean;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        RetryBody: {
            /**
             * @description downstream (default) also resets every node after it.
             * @enum {unknown}
             */
            scope?: "downstream" | "node";
            /** @description Why; kept in history and audit. */
            reason: string;
            /** @description Merge patch on the plan's `with`; it stays until another one replaces it. Gates that approved other inputs ask again. */
            input_overrides?: {
                [key: string]: unknown;
            };
            expected_generation?: number;
            /** @description Your findings at the target when the outcome was unknown. */
            reconciliation?: {
                /** @enum {unknown} */
                finding: "effect_absent" | "effect_present" | "effect_partial";
                note: string;
            };
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        Reviewed: {
            digest: string;
        };
        Risk: {
            /** @enum {unknown} */
            level: "low" | "medium" | "high" | "critical";
            score: number;
            factors: {
                factor: string;
                points: number;
                detail: string;
                values?: components["schemas"]["TextValues"];
            }[];
        };
        /** @enum {unknown} */
        RoleName: "viewer" | "planner" | "operator" | "approver" | "engineer" | "admin" | "auditor" | "controller";
        Rotation: {
            /** @default 86400 */
            overlap_s: number;
            /** @default 90 */
            expires_in_days: number;
        };
        RulesBody: {
            /** @description The events that are sent at all. */
            events: ("gate.waiting" | "gate.reopened" | "gate.escalated" | "patch.waiting" | "operation.held" | "operation.failed")[];
            /** @enum {unknown} */
            min_risk: "low" | "medium" | "high" | "critical";
            steps: components["schemas"]["NotifySteps"];
            quiet: components["schemas"]["Quiet"] | null;
            /** @description The minimum time between two messages to a destination; the next one covers all events until then. */
            digest_s: number;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        SavedView: {
            /** Format: uuid */
            view_id: string;
            /** @enum {unknown} */
            list: "inbox" | "operations" | "resources";
            name: string;
            filters: components["schemas"]["ViewFilters"];
            group: string | null;
            owner: string | null;
            /** @description Grows with each change; its ETag is this number in quotes. */
            version: number;
            /** Format: date-time */
            created_at: string;
        };
        SavedViews: {
            items: components["schemas"]["SavedView"][];
        };
        ScheduleBody: {
            when: components["schemas"]["When"];
            intent: components["schemas"]["IntentBody"];
            /**
             * @description `plan`: a person reviews and starts each plan. `start`: it starts by itself, up to its first gate.
             * @default plan
             * @enum {unknown}
             */
            proceed: "plan" | "start";
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        ScheduleChange: {
            reason?: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        ScheduleList: {
            items: {
                /** Format: uuid */
                schedule_id: string;
                title: string;
                /** @enum {unknown} */
                status: "active" | "paused" | "ended";
                status_reason: string | null;
                owner: components["schemas"]["ActorSchema"];
                when: components["schemas"]["When"];
                /** @enum {unknown} */
                proceed: "plan" | "start";
                next_at: string | null;
                last_run: components["schemas"]["ScheduleRun"] | null;
                /** @description RFC 3339, UTC, microseconds. */
                created_at: string;
                /** @description RFC 3339, UTC, microseconds. */
                updated_at: string;
            }[];
            next_page_token: string | null;
            as_of: components["schemas"]["AsOf"];
        };
        ScheduleRun: {
            /** @description RFC 3339, UTC, microseconds. */
            due_at: string;
            /** @enum {unknown} */
            state: "begun" | "planned" | "started" | "skipped" | "refused";
            detail: string | null;
            targets: string[] | null;
            intent_id: string | null;
            plan_id: string | null;
            operation_id: string | null;
        };
        ScheduleView: {
            /** Format: uuid */
            schedule_id: string;
            title: string;
            /** @enum {unknown} */
            status: "active" | "paused" | "ended";
            status_reason: string | null;
            owner: components["schemas"]["ActorSchema"];
            when: components["schemas"]["When"];
            /** @enum {unknown} */
            proceed: "plan" | "start";
            next_at: string | null;
            last_run: components["schemas"]["ScheduleRun"] | null;
            /** @description RFC 3339, UTC, microseconds. */
            created_at: string;
            /** @description RFC 3339, UTC, microseconds. */
            updated_at: string;
            hook: components["schemas"]["HookView"] | null;
            intent: components["schemas"]["IntentBody"];
            /** @description The next five times. */
            upcoming: string[];
            /** @description The last 20, newest first. */
            runs: components["schemas"]["ScheduleRun"][];
            allowed_actions: components["schemas"]["AllowedActionSchema"][];
        };
        Scope: {
            region_id: string | null;
            datacenter_id: string | null;
            layer_id: string | null;
            segment_id: string | null;
        };
        SearchItem: {
            resource_id: string;
            type_key: string;
            name: string;
            display_name: string;
            owner: string | null;
            scope: components["schemas"]["Scope"];
            lifecycle_status: string;
            health_status: components["schemas"]["Health"];
            /** @description Where the words occur: name (and id), label (owner and type too), relation (the names of what it points at), attribute (states and annotations), or a name that is spelled alike. */
            matched: ("name" | "label" | "relation" | "attribute" | "spelling")[];
            /** @description Higher is better; comparable within one answer only. */
            score: number;
        };
        SearchResult: {
            items: components["schemas"]["SearchItem"][];
            /** @description More results exist than `limit`: send more words. */
            more: boolean;
            as_of: components["schemas"]["ReadAsOf"];
        };
        SecretBody: {
            /**
             * @description How long messages are signed with the previous secret too; 0: no longer.
             * @default 86400
             */
            overlap_s: number;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        SecretView: {
            /** @description Verifies `webhook-signature`: HMAC-SHA-256 over `id.timestamp.body`, as Standard Webhooks states it. */
            secret: string;
        };
        SessionList: {
            items: components["schemas"]["SessionView"][];
            next_page_token: string | null;
            as_of: string;
        };
        SessionView: {
            id: string;
            created_at: string;
            last_used_at: string;
            expires_at: string;
            user_agent: string | null;
            ip_address: string | null;
            metadata: {
                [key: string]: unknown;
            } | null;
            /** @enum {unknown} */
            mode: "json" | "cookie" | "machine";
            current: boolean;
        };
        SignalBody: {
            /** @description Why; kept in history and audit. */
            reason?: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
            /** @constant */
            type: "external_check_result";
            body: components["schemas"]["CheckResult"];
        } | {
            /** @description Why; kept in history and audit. */
            reason?: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
            /** @constant */
            type: "node_signal";
            body: components["schemas"]["NodeSignal"];
        } | {
            /** @description Why; kept in history and audit. */
            reason?: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
            /** @constant */
            type: "catalog_drift";
            body: components["schemas"]["DriftSignal"];
        };
        SignalReply: {
            command: components["schemas"]["CommandView"];
        };
        /** @description Median and 90th percentile in seconds; null if there are none. */
        Spread: {
            p50_s: number;
            p90_s: number;
        } | null;
        StartBody: {
            reviewed_plan_hash: string;
            /**
             * @description What to do while another operation holds a resource.
             * @enum {unknown}
             */
            on_conflict?: "queue" | "reject";
            /** Format: date-time */
            not_before?: string;
            window_id?: string;
            max_parallel?: number;
            deadline_s?: number;
            comment?: string;
            /** @description Check and show the effect; nothing is stored. Answers 200 or the real refusal. */
            dry_run?: boolean;
        };
        /** @description The newest pause, resume or cancel by a person: who, why and when. */
        Steering: {
            /** @enum {unknown} */
            kind: "pause" | "resume" | "cancel";
            actor: components["schemas"]["ActorSchema"];
            reason: string | null;
            /** @description RFC 3339, UTC, microseconds. */
            accepted_at: string;
        };
        SubjectGrantView: {
            /** Format: uuid */
            id: string;
            /** @enum {unknown} */
            subject_type: "user" | "group";
            subject_id: string;
            role: string;
            scope: components["schemas"]["GrantScope"];
            expires_at: string | null;
        };
        TextValues: {
            [key: string]: string | number;
        };
        Timeline: {
            events: components["schemas"]["TimelineEventView"][];
            last_seq: number;
        };
        TimelineEventView: {
            seq: number;
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
            type: string;
            actor: components["schemas"]["ActorSchema"];
            on_behalf_of: string | null;
            reason: string | null;
            node_id: string | null;
            gate_id: string | null;
            patch_id: string | null;
            command_id: string | null;
            data: {
                [key: string]: unknown;
            };
            evidence_seq: number | null;
        };
        TokenReply: {
            access_token: string;
            refresh_token?: string;
            csrf_token?: string;
            /** @constant */
            token_type: "Bearer";
            expires_in: number;
            device_token?: string;
            revoked_sessions?: number;
        };
        TopologyGraph: {
            nodes: {
                resource_id: string;
                type_key: string;
                name: string;
                lifecycle_status: string;
                health_status: components["schemas"]["Health"];
                counts: components["schemas"]["PlaceCounts"];
            }[];
            edges: components["schemas"]["GraphEdge"][];
            truncated: {
                nodes: boolean;
                edges: boolean;
            };
            as_of: components["schemas"]["ReadAsOf"];
        };
        TopologyList: {
            items: {
                resource_id: string;
                type_key: string;
                type_version: number;
                name: string;
                display_name: string;
                owner: string | null;
                labels: {
                    [key: string]: string;
                };
                parent_id: string | null;
                lifecycle_status: string;
                health_status: components["schemas"]["Health"];
                scope: components["schemas"]["Scope"];
                /** @description Counts decided changes; health never changes it. */
                version: number;
                health_revision: number;
                /** @description Grows when desired_state really changes. */
                generation: number;
                /** @description The generation that observed_state was written for; 0 = never. */
                observed_generation: number;
                drift: components["schemas"]["Drift"];
                last_operation: components["schemas"]["LastOperation"] | null;
                /** @description RFC 3339 in UTC with microseconds. */
                created_at: string;
                /** @description `user:<uuid>` or `svc:<name>`. */
                created_by: string;
                /** @description RFC 3339 in UTC with microseconds. */
                updated_at: string;
                updated_by: string;
                change_token: string;
                annotations?: {
                    [key: string]: string;
                };
                desired_state?: {
                    [key: string]: unknown;
                };
                observed_state?: {
                    [key: string]: unknown;
                };
                conditions?: components["schemas"]["Condition"][];
                health?: components["schemas"]["OwnHealth"];
                /** @description Open edges to resources that the caller may see. */
                relationships?: {
                    out: number;
                    in: number;
                };
                capabilities?: components["schemas"]["CapabilityCounts"];
                /** @description Managers by pointer: the nearest pointer above a field names who set it last; "" holds for the rest. */
                field_owners?: {
                    [key: string]: string;
                };
                /** @description The same with names and times; by include=owners, of one resource. */
                managed_fields?: components["schemas"]["ManagedField"][];
                /** @description True when an older version was asked for. */
                historical?: boolean;
                counts: components["schemas"]["PlaceCounts"];
            }[];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
        };
        TotpBody: {
            setup: string;
            /** @description The 6 digits that the app shows. */
            code: string;
        };
        TotpSetup: {
            /** @description For an app that reads no QR code. Shown once. */
            secret: string;
            /** @description What the QR code says. */
            uri: string;
            /** @description Send it back with the first code. */
            setup: string;
            expires_at: string;
        };
        TotpView: {
            /** @description Whether a code is asked for after the password. */
            active: boolean;
            created_at: string | null;
            last_used_at: string | null;
        };
        /** @description Tokens of a CI system that stand for the machine. */
        Trust: {
            issuer: string;
            audience: string;
            /** @description Claims that a token must hold with exactly these texts. */
            claims: {
                [key: string]: string;
            };
        };
        UserDetail: {
            /** Format: uuid */
            id: string;
            username: string;
            /** @enum {unknown} */
            kind: "person" | "machine";
            /** @enum {unknown} */
            status: "ACTIVE" | "DISABLED" | "DELETED";
            /** Format: date-time */
            created_at: string;
            disabled_at: string | null;
            roles: string[];
            groups: string[];
            grants: components["schemas"]["GrantView"][];
        };
        UserMoved: {
            user: components["schemas"]["UserDetail"];
            /** @enum {unknown} */
            sessions: "revoked" | "pending";
        };
        Validated: {
            resource: components["schemas"]["ResourceView"];
            changed_paths: string[];
            would_create_intent: boolean;
        };
        VersionItem: {
            version: number;
            /** @description RFC 3339 in UTC with microseconds. */
            at: string;
            actor: string;
            actor_name: string;
            command_id: string | null;
            operation_id: string | null;
            lifecycle_status: string;
            changed_paths: string[];
            evidence_refs: components["schemas"]["EvidenceRef"][];
        };
        VersionList: {
            items: components["schemas"]["VersionItem"][];
            next_page_token: string | null;
            prev_page_token: string | null;
            count?: components["schemas"]["PageCount"];
            as_of: components["schemas"]["ReadAsOf"];
        };
        /** @description The search parameters of the list, by name. The console leaves out those that it does not know. */
        ViewFilters: {
            [key: string]: string;
        };
        ViewPatch: {
            name?: string;
            filters?: components["schemas"]["ViewFilters"];
            group?: string | null;
        };
        VoteView: {
            actor: components["schemas"]["ActorSchema"];
            /** @enum {unknown} */
            decision: "approve" | "reject";
            comment: string | null;
            digest: string;
            /** @description RFC 3339, UTC, microseconds. */
            at: string;
            round: number;
            group: string | null;
        };
        Waiting: {
            patches: components["schemas"]["WaitingPatch"][];
            failures: components["schemas"]["OpenFailure"][];
            expiring: components["schemas"]["Expiring"][];
            as_of: components["schemas"]["AsOf"];
        };
        WaitingPatch: {
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            operation_title: string;
            mine: boolean;
            /** Format: uuid */
            patch_id: string;
            reason: string;
            ticket: string | null;
            proposer: components["schemas"]["ActorSchema"];
            change_count: number;
            approvals: number;
            quorum: number;
            /** @description RFC 3339, UTC, microseconds. */
            waiting_since: string;
            deadline_at: string | null;
            digest: string;
            environment: string | null;
            alone: components["schemas"]["AloneSchema"];
        };
        /** @description One message, in the shape of Standard Webhooks. Later releases may add members. */
        WebhookMessage: {
            /**
             * @description `decisions.waiting`: some of `items` wait for a decision. `operations.stopped`: all of them are operations that failed or that a failure holds up. The others but `test` are events of an account. Later releases may add types.
             * @enum {unknown}
             */
            type: "decisions.waiting" | "operations.stopped" | "test" | "device.new" | "password.changed" | "account.reset" | "account.recovery" | "passkey.added" | "passkey.removed" | "totp.added" | "totp.removed" | "totp.locked" | "provider.linked" | "provider.unlinked" | "rights.changed" | "destination.added" | "destination.removed" | "key.ending" | "key.seen" | "break_glass.used" | "spray.suspected";
            /**
             * Format: date-time
             * @description When this try was made.
             */
            timestamp: string;
            data: {
                /** @description The message in one sentence. */
                subject: string;
                /** @description Of an event of an account: time, address and client, a line each. */
                details?: string;
                /** @description The page of the console for all of it. */
                link: string;
                /** @description Empty for an event of an account, and for `test`. */
                items: components["schemas"]["MessageItem"][];
            };
        };
        When: components["schemas"]["WhenOnce"] | components["schemas"]["WhenEvery"] | components["schemas"]["WhenCron"] | components["schemas"]["WhenMet"] | components["schemas"]["WhenHook"];
        /** @description When resources begin to meet a condition, such as drift; those are the targets of the intent. */
        WhenCondition: {
            type_key: string;
            /** @description CEL over `target`. */
            when: string;
        };
        WhenCron: {
            /** @description Minute, hour, day of month, month, day of week. */
            cron: string;
            /** @description An IANA time zone, through its daylight saving. */
            timezone: string;
        };
        WhenEvery: {
            /** @description This often, from its creation. */
            every_s: number;
        };
        WhenHook: {
            /** @description When a signed webhook comes to POST /api/v1/hooks/{schedule_id}. */
            webhook: {
                /**
                 * @description `standard`: Standard Webhooks, at most 5 minutes old. `forge`: X-Hub-Signature-256 over the body, as code forges sign; the same body counts once.
                 * @enum {unknown}
                 */
                signature: "standard" | "forge";
                /** @description CEL over `body`; a delivery that does not meet it starts no run. */
                if?: string;
            };
        };
        WhenMet: {
            on: components["schemas"]["WhenCondition"];
        };
        WhenOnce: {
            /**
             * Format: date-time
             * @description Once, at this time.
             */
            at: string;
        };
        Work: {
            v: number;
            /**
             * Format: uuid
             * @description The operation; also its workflow id.
             */
            operation_id: string;
            node_id: string;
            attempt: number;
            generation: number;
            fence: number;
            /** @description The same in each retry of the attempt. */
            key: string;
            /** @description Bearer for results_url and artifacts_url. */
            execution_token: string;
            deadline_at: string;
            /** @description An agent that is silent for three intervals is given up. */
            heartbeat_s: number;
            /** @description A later `started` is refused. Work from POST /v1/pools/{pool}/work must be started within 30 s, or it is handed over again. */
            start_before: string;
            results_url: string;
            artifacts_url: string;
            job: string;
            inputs: {
                [key: string]: unknown;
            };
            secrets?: {
                [key: string]: unknown;
            };
            labels?: {
                [key: string]: unknown;
            };
            trace?: string;
        } & {
            [key: string]: unknown;
        };
        WorkRequest: {
            /** @description Labels of this agent. It gets no work that demands other labels. */
            labels?: {
                [key: string]: string;
            };
            /** @description How long to wait for work. */
            wait_s?: number;
            agent?: {
                /** @description Tells apart the agents of one machine in GET /v1/agents. */
                name: string;
                /** @description Random for each process: so two that use one name are found. */
                instance?: string;
                version?: string;
                concurrency?: number;
                /** @description All pools whose work it takes. */
                pools?: string[];
                /**
                 * @description It takes no more work, or has ended and leaves the list: this request only says so, and gets 204.
                 * @enum {unknown}
                 */
                leaves?: "draining" | "gone";
            };
        };
    };
    responses: {
        /** @description The request does not fit its description. */
        BadRequest: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["BadRequestProblem"];
            };
        };
        /** @description The token is missing, has expired or is refused. */
        Unauthorized: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "www-authenticate": components["headers"]["www-authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["UnauthorizedProblem"];
            };
        };
        /** @description The caller may not do this. */
        Forbidden: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ForbiddenProblem"];
            };
        };
        /** @description No such object, or none that the caller may see. */
        NotFound: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["NotFoundProblem"];
            };
        };
        /** @description Not possible in the current state. */
        Conflict: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ConflictProblem"];
            };
        };
        /** @description This data is past its retention period. */
        Gone: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["GoneProblem"];
            };
        };
        /** @description If-Match names another version. */
        PreconditionFailed: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["PreconditionFailedProblem"];
            };
        };
        /** @description The body is too large. */
        ContentTooLarge: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ContentTooLargeProblem"];
            };
        };
        /** @description The path has more than 2,048 or the query more than 8,192 characters, percent-encoded. */
        UriTooLong: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["UriTooLongProblem"];
            };
        };
        /** @description The content type is not accepted here. */
        UnsupportedMediaType: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["UnsupportedMediaTypeProblem"];
            };
        };
        /** @description The Range is outside the content. */
        RangeNotSatisfiable: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["RangeNotSatisfiableProblem"];
            };
        };
        /** @description The request is well-formed and cannot be carried out. */
        UnprocessableContent: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["UnprocessableContentProblem"];
            };
        };
        /** @description If-Match is missing. */
        PreconditionRequired: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["PreconditionRequiredProblem"];
            };
        };
        /** @description A limit of the gateway is exhausted. */
        TooManyRequests: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "retry-after": components["headers"]["retry-after"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["TooManyRequestsProblem"];
            };
        };
        /** @description Request target and headers have more than 16,384 bytes together. */
        HeadersTooLarge: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["HeadersTooLargeProblem"];
            };
        };
        /** @description A fault of the service. Report the request id. */
        InternalError: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["InternalErrorProblem"];
            };
        };
        /** @description A part of the service could not be reached. */
        BadGateway: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "retry-after": components["headers"]["retry-after"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["BadGatewayProblem"];
            };
        };
        /** @description A part of the service is unavailable or overloaded. Repeat the same request later. */
        Unavailable: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "retry-after": components["headers"]["retry-after"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["UnavailableProblem"];
            };
        };
        /** @description A part of the service did not answer in time. It is unknown whether the request was carried out. */
        GatewayTimeout: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "retry-after": components["headers"]["retry-after"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["GatewayTimeoutProblem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Names this request in logs, events and audit. */
        "x-request-id": string;
        /** @description The version that was read, for If-Match and If-None-Match. */
        etag: string;
        /** @description Where the created object, or the outcome of the accepted command, is read; of a redirect: where the browser goes next. */
        location: string;
        /** @description `true`: the stored first answer of this Idempotency-Key. */
        "idempotency-replayed": string;
        /** @description Seconds after which the same request may be sent again. */
        "retry-after": string;
        /** @description Bearer, with error="invalid_token" when the token that was sent is refused. */
        "www-authenticate": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    createToken: {
        parameters: {
            query?: {
                response_mode?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {unknown} */
                    grant_type?: "password" | "refresh_token" | "authorization_code" | "passkey" | "second_factor" | "urn:ietf:params:oauth:grant-type:device_code";
                    username?: string;
                    /** @description At most 128 characters and 512 bytes. */
                    password?: string;
                    refresh_token?: string;
                    code?: string;
                    code_verifier?: string;
                    redirect_uri?: string;
                    device_code?: string;
                    /** @constant */
                    client_id?: "signalbox-cli";
                    assertion?: components["schemas"]["Assertion"];
                    /** @description The 6 digits that the app shows. */
                    totp?: string;
                    factor_token?: string;
                    device_token?: string;
                    /** @description Ask for a device token in the reply (JSON mode). */
                    remember_device?: boolean;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    startSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    username: string;
                    /** @description At most 128 characters and 512 bytes. */
                    password: string;
                    device_token?: string;
                    /** @description Ask for a device token in the reply (JSON mode). */
                    remember_device?: boolean;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    refreshSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    refresh_token: string;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    endSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createMachineToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description client_credentials, or urn:ietf:params:oauth:grant-type:token-exchange. */
                    grant_type: string;
                    client_id?: string;
                    client_secret?: string;
                    /** @constant */
                    client_assertion_type?: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                    client_assertion?: string;
                    /** @enum {unknown} */
                    subject_token_type?: "urn:ietf:params:oauth:token-type:jwt" | "urn:ietf:params:oauth:token-type:id_token";
                    subject_token?: string;
                    /** @constant */
                    requested_token_type?: "urn:ietf:params:oauth:token-type:access_token";
                    scope?: string;
                } & {
                    [key: string]: unknown;
                };
                "application/x-www-form-urlencoded": {
                    /** @description client_credentials, or urn:ietf:params:oauth:grant-type:token-exchange. */
                    grant_type: string;
                    client_id?: string;
                    client_secret?: string;
                    /** @constant */
                    client_assertion_type?: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                    client_assertion?: string;
                    /** @enum {unknown} */
                    subject_token_type?: "urn:ietf:params:oauth:token-type:jwt" | "urn:ietf:params:oauth:token-type:id_token";
                    subject_token?: string;
                    /** @constant */
                    requested_token_type?: "urn:ietf:params:oauth:token-type:access_token";
                    scope?: string;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MachineToken"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCsrfToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CsrfReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    confirmPassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description At most 128 characters and 512 bytes. */
                    password?: string;
                    assertion?: components["schemas"]["Assertion"];
                    /** @description The 6 digits that the app shows. */
                    totp?: string;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createPasskeyChallenge: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyChallenge"];
                };
            };
            400: components["responses"]["BadRequest"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createDeviceAuthorization: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @constant */
                    client_id: "signalbox-cli";
                    /** @description The name of the machine. */
                    host: string;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceAuthorization"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    findDeviceRequest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceCode"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceRequestView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    approveDeviceRequest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceCode"];
            };
        };
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    denyDeviceRequest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceCode"];
            };
        };
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listProviders: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityProviderList"];
                };
            };
            400: components["responses"]["BadRequest"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    startProviderSignIn: {
        parameters: {
            query: {
                /** @description A path of the console. */
                return_to?: string;
                /** @description trial: signs no one in; an administrator reads what a sign-in would do. */
                purpose: "sign_in" | "trial";
                /** @description Of a native app. */
                redirect_uri?: string;
                /** @description PKCE, S256. */
                code_challenge?: string;
                state?: string;
            };
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            303: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    startProviderProof: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {unknown} */
                    purpose: "reauth" | "link";
                    /** @description A path of the console. */
                    return_to?: string;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LocationReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    finishProviderSignIn: {
        parameters: {
            query?: {
                code?: string;
                state?: string;
                iss?: string;
                error?: string;
                error_description?: string;
            };
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            303: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    endProviderSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    logout_token: string;
                } & {
                    [key: string]: unknown;
                };
                "application/x-www-form-urlencoded": {
                    logout_token: string;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    revokeOtherSessions: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        revoked: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    revokeSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    changePassword: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description At most 128 characters and 512 bytes. */
                    current_password: string;
                    /** @description At most 128 characters and 512 bytes. */
                    new_password: string;
                };
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        access_token?: string;
                        refresh_token?: string;
                        csrf_token?: string;
                        /** @constant */
                        token_type?: "Bearer";
                        expires_in?: number;
                        device_token?: string;
                        revoked_sessions?: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listPasskeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    addPasskey: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name: string;
                    attestation: components["schemas"]["Attestation"];
                };
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    removePasskey: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                passkey_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getTotp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TotpView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    setTotp: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TotpBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TotpView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    removeTotp: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    beginTotp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TotpSetup"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listIdentities: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExternalIdentityList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    unlinkIdentity: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listUserIdentities: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExternalIdentityList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    unlinkUserIdentity: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    unlockUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listUserSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    revokeUserSessions: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    revokeUserSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listAuthEvents: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
                /** @description The user the event is about. */
                user_id?: string;
                /** @description An action, such as login or revoke_session. */
                type?: string;
                from?: string;
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            at: string;
                            actor: string;
                            action: string;
                            object: string;
                            outcome: string;
                            reason: string | null;
                            request_id: string | null;
                        }[];
                        next_page_token: string | null;
                        as_of: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getProviderTrial: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                trial: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderTrial"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCurrentUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CurrentUser"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getPreferences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Preferences"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    setPreferences: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Preferences"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Preferences"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listViews: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedViews"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createView: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewView"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    deleteView: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                view_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    updateView: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                view_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ViewPatch"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    enrolUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Enrol"];
            };
        };
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listUsers: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
                status?: "ACTIVE" | "DISABLED" | "DELETED";
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["UserDetail"][];
                        next_page_token: string | null;
                        as_of: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewUser"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        user: components["schemas"]["UserDetail"];
                        enrolment: components["schemas"]["Enrolment"];
                    };
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserDetail"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    disableUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserMoved"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserMoved"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserMoved"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserMoved"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    enableUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserMoved"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserMoved"] | components["schemas"]["Pending"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createEnrolmentToken: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        enrolment: components["schemas"]["Enrolment"];
                    };
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    recoverUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        user: components["schemas"]["UserDetail"];
                    };
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        enrolment: components["schemas"]["Enrolment"];
                    };
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listGroups: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["GroupView"][];
                        next_page_token: string | null;
                        /** Format: date-time */
                        as_of: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createGroup: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewGroup"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    deleteGroup: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                group_key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    updateGroup: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                group_key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GroupPatch"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    addGroupMember: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                group_key: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    removeGroupMember: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                group_key: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listGrants: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["SubjectGrantView"][];
                        next_page_token: string | null;
                        /** Format: date-time */
                        as_of: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createGrant: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSubjectGrant"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubjectGrantView"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    deleteGrant: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                grant_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listRoles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            role: string;
                            permissions: string[];
                            /** @description Whether a person can hold it. */
                            people: boolean;
                            /** @description Whether a machine can hold it. */
                            machines: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listProviderSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderViews"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listChanges: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
                status?: components["schemas"]["ChangeState"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Changes"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    confirmChange: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                change_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reviewed"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecidedChange"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createEnrolmentHalf: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                change_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnrolmentHalf"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    rejectChange: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                change_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecidedChange"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    withdrawChange: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                change_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecidedChange"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listMachines: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Machines"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createMachine: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMachine"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MachineView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    addMachineOwner: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                machine_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createMachineCredential: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                machine_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCredential"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MadeCredential"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PendingCredential"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    rotateMachineKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                machine_id: string;
                credential_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rotation"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MadeCredential"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PendingCredential"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    revokeMachineCredential: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                machine_id: string;
                credential_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listUserEvents: {
        parameters: {
            query: {
                page_size: number;
                page_token?: string;
                /** @description Only events about this user. */
                user_id?: string;
                /** @description An action, such as user.disabled. */
                type?: string;
                from?: string;
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["EventView"][];
                        next_page_token: string | null;
                        /** Format: date-time */
                        as_of: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getSigningKeys: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public signing keys (RFC 7517). */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: {
                            /** @constant */
                            kty: "RSA";
                            n: string;
                            e: string;
                            kid: string;
                            /** @constant */
                            alg: "RS256";
                            /** @constant */
                            use: "sig";
                        }[];
                    };
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getLiveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "live";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            414: components["responses"]["UriTooLong"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It may. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "ready" | "degraded" | "unready";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            414: components["responses"]["UriTooLong"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            /** @description Not now. */
            503: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {unknown} */
                        status: "ready" | "degraded" | "unready";
                    };
                };
            };
        };
    };
    getPlatformHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The parts. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        parts: ({
                            app: string;
                            instance: string;
                            /**
                             * @description silent: no report for 30 s and no orderly stop. After 10 minutes it is left out.
                             * @enum {unknown}
                             */
                            status: "ready" | "degraded" | "unready" | "silent";
                            /** @description Since when it has reported this. */
                            since: string;
                            checks: {
                                [key: string]: unknown;
                            };
                            lags: {
                                [key: string]: number;
                            };
                        } & {
                            [key: string]: unknown;
                        })[];
                        /** Format: date-time */
                        as_of: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listResources: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                /** @description Types, including derived types. */
                type_key?: string[];
                region_id?: string;
                datacenter_id?: string;
                layer_id?: string;
                layer_kind?: string;
                segment_id?: string;
                parent_id?: string;
                /** @description A team or person: only resources owned_by it. */
                owned_by?: string;
                /** @description Naming a terminal state includes retired resources. */
                lifecycle_status?: string[];
                /** @description healthy, degraded, unhealthy, unknown, maintenance. */
                health_status?: string[];
                /** @description `key` or `key=value`; all must hold. */
                label?: string[];
                drift?: "in_sync" | "drifted" | "unknown";
                /** @description At most 200 resource ids. */
                ids?: string[];
                include_retired?: boolean;
                /** @description AIP-160 style: name:web AND labels.env=prod AND NOT health_status=healthy. */
                filter?: string;
                /** @description At most 3 of resource_id, type_key, name, created_at, updated_at, lifecycle_status, health_status; `-` = descending. */
                sort?: string;
                /** @description Only resources last changed before this time. */
                stale_since?: string;
                /** @description Resources as they were at this time: sorted by resource_id, name or created_at only; a page may be short. */
                at?: string;
                /** @description Fields to return, such as name,labels.environment; resource_id and version are always included. */
                fields?: string[];
                /** @description `state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields). */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
                count?: "none" | "capped" | "exact";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResourceList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createResource: {
        parameters: {
            query?: {
                /** @description Records facts about existing resources; permission catalog:record. */
                mode?: "record_only";
                /** @description Runs all checks and stores nothing. */
                validate_only?: boolean;
                reason?: string;
                /** @description Owns the fields that it sets; 409 field_owned if another manager set one to another value. Not user, operation or import. */
                manager?: string;
                /** @description Takes over fields of other managers; false refuses to, even if no manager is named. */
                force?: boolean;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResourceCreate"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Validated"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResourceView"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Accepted"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getResource: {
        parameters: {
            query?: {
                /** @description Fields to return, such as name,labels.environment; resource_id and version are always included. */
                fields?: string[];
                /** @description `state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields). */
                include?: string[];
                /** @description The resource as it was at this time. */
                at?: string;
                /** @description The resource as it was at this version. */
                at_version?: number;
            };
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResourceView"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    updateResource: {
        parameters: {
            query?: {
                /** @description Records facts about existing resources; permission catalog:record. */
                mode?: "record_only";
                /** @description Runs all checks and stores nothing. */
                validate_only?: boolean;
                expected_version?: number;
                reason?: string;
                /** @description Owns the fields that it sets; 409 field_owned if another manager set one to another value. Not user, operation or import. */
                manager?: string;
                /** @description Takes over fields of other managers; false refuses to, even if no manager is named. */
                force?: boolean;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["ResourcePatch"];
                "application/json-patch+json": components["schemas"]["ResourcePatch"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResourceView"] | components["schemas"]["Validated"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Accepted"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            428: components["responses"]["PreconditionRequired"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listRelationships: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                direction?: "out" | "in" | "both";
                /** @description Relationship type keys. */
                relationship_types?: string[];
                /** @description Types of the other end, including derived types. */
                peer_types?: string[];
                /** @description The edges as they were at this time. */
                at?: string;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelationshipList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getResourceCapabilities: {
        parameters: {
            query?: {
                /** @description Only provided capabilities of these statuses; all but withdrawn unless said. */
                status?: string[];
                /** @description Degraded providers also meet requirements. */
                allow_degraded?: boolean;
                /** @description The state at this time, without health. */
                at?: string;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResourceCapabilities"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getResourceHealth: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                /** @description Own health as it was; kept for 30 days. */
                at?: string;
                /** @description Adds observations since then, newest first. */
                history_since?: string;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getDifference: {
        parameters: {
            query: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                /** @description The earlier time (RFC 3339). */
                from: string;
                /** @description The later time; now by default. A page_token keeps the time of its first page. */
                to?: string;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Difference"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getImpact: {
        parameters: {
            query?: {
                /** @description The maximum number of steps from the resource. */
                max_distance?: number;
                /** @description The maximum number of items; counts include all. */
                limit?: number;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Impact"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getOperationsSummary: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationsSummary"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listResourceVersions: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VersionList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    searchResources: {
        parameters: {
            query: {
                /** @description Words, matched by prefix; all must occur. Misspelled names are found if there is no other match. */
                q: string;
                /** @description Types, including derived types. */
                type_key?: string[];
                /** @description A team or person: only resources owned_by it. */
                owned_by?: string;
                region_id?: string;
                /** @description healthy, degraded, unhealthy, unknown, maintenance. */
                health_status?: string[];
                include_retired?: boolean;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listResourceTypes: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                status?: "active" | "deprecated";
                /** @description Only types whose newest version is this one. */
                version?: number;
                /** @description Only types derived from this type. */
                derived_from?: string;
                provides?: string;
                requires?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["ResourceType"][];
                        next_page_token: string | null;
                        prev_page_token: string | null;
                        count?: components["schemas"]["PageCount"];
                        as_of: components["schemas"]["ReadAsOf"];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getResourceType: {
        parameters: {
            query?: {
                version?: number;
            };
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                type_key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResourceType"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listRegions: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                region_id?: string;
                datacenter_id?: string;
                layer_id?: string;
                layer_kind?: string;
                /** @description healthy, degraded, unhealthy, unknown, maintenance. */
                health_status?: string[];
                /** @description `key` or `key=value`; all must hold. */
                label?: string[];
                include_retired?: boolean;
                filter?: string;
                sort?: string;
                parent_id?: string;
                /** @description A team or person: only resources owned_by it. */
                owned_by?: string;
                /** @description Naming a terminal state includes retired resources. */
                lifecycle_status?: string[];
                drift?: "in_sync" | "drifted" | "unknown";
                /** @description At most 200 resource ids. */
                ids?: string[];
                /** @description Only resources last changed before this time. */
                stale_since?: string;
                count?: "none" | "capped" | "exact";
                /** @description Fields to return, such as name,labels.environment; resource_id and version are always included. */
                fields?: string[];
                /** @description `state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields). */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopologyList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listDatacenters: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                region_id?: string;
                datacenter_id?: string;
                layer_id?: string;
                layer_kind?: string;
                /** @description healthy, degraded, unhealthy, unknown, maintenance. */
                health_status?: string[];
                /** @description `key` or `key=value`; all must hold. */
                label?: string[];
                include_retired?: boolean;
                filter?: string;
                sort?: string;
                parent_id?: string;
                /** @description A team or person: only resources owned_by it. */
                owned_by?: string;
                /** @description Naming a terminal state includes retired resources. */
                lifecycle_status?: string[];
                drift?: "in_sync" | "drifted" | "unknown";
                /** @description At most 200 resource ids. */
                ids?: string[];
                /** @description Only resources last changed before this time. */
                stale_since?: string;
                count?: "none" | "capped" | "exact";
                /** @description Fields to return, such as name,labels.environment; resource_id and version are always included. */
                fields?: string[];
                /** @description `state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields). */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopologyList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listLayers: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                region_id?: string;
                datacenter_id?: string;
                layer_id?: string;
                layer_kind?: string;
                /** @description healthy, degraded, unhealthy, unknown, maintenance. */
                health_status?: string[];
                /** @description `key` or `key=value`; all must hold. */
                label?: string[];
                include_retired?: boolean;
                filter?: string;
                sort?: string;
                parent_id?: string;
                /** @description A team or person: only resources owned_by it. */
                owned_by?: string;
                /** @description Naming a terminal state includes retired resources. */
                lifecycle_status?: string[];
                drift?: "in_sync" | "drifted" | "unknown";
                /** @description At most 200 resource ids. */
                ids?: string[];
                /** @description Only resources last changed before this time. */
                stale_since?: string;
                count?: "none" | "capped" | "exact";
                /** @description Fields to return, such as name,labels.environment; resource_id and version are always included. */
                fields?: string[];
                /** @description `state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields). */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopologyList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listSegments: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                region_id?: string;
                datacenter_id?: string;
                layer_id?: string;
                layer_kind?: string;
                /** @description healthy, degraded, unhealthy, unknown, maintenance. */
                health_status?: string[];
                /** @description `key` or `key=value`; all must hold. */
                label?: string[];
                include_retired?: boolean;
                filter?: string;
                sort?: string;
                parent_id?: string;
                /** @description A team or person: only resources owned_by it. */
                owned_by?: string;
                /** @description Naming a terminal state includes retired resources. */
                lifecycle_status?: string[];
                drift?: "in_sync" | "drifted" | "unknown";
                /** @description At most 200 resource ids. */
                ids?: string[];
                /** @description Only resources last changed before this time. */
                stale_since?: string;
                count?: "none" | "capped" | "exact";
                /** @description Fields to return, such as name,labels.environment; resource_id and version are always included. */
                fields?: string[];
                /** @description `state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields). */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopologyList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getTopologyGraph: {
        parameters: {
            query?: {
                /** @description Only this region and its contents. */
                region_id?: string;
                max_nodes?: number;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopologyGraph"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    traverseResources: {
        parameters: {
            query?: {
                /** @description 1 to 20 resource ids to start from. */
                root_id?: string[];
                /** @description Instead of root_id: selects at most 500 roots. */
                filter?: string;
                depth?: number;
                direction?: "out" | "in" | "both";
                /** @description Only these relationships; all by default. */
                relationship_types?: string[];
                /** @description Other types are neither shown nor passed through; derived types count. */
                node_types?: string[];
                max_nodes?: number;
                max_edges?: number;
                /** @description The maximum number of neighbors of one node. */
                fanout?: number;
                /** @description The graph as it was at this time (RFC 3339); without health. */
                at?: string;
                /** @description `health`: the roll-up of each node, with all that it takes health from. */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
                /** @description From an entry of a frontier: its next neighbors. All other parameters must stay the same. */
                page_token?: string;
                format?: "json" | "graphml" | "dot";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Graph"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    traverseTopology: {
        parameters: {
            query?: {
                /** @description 1 to 20 resource ids to start from. */
                root_id?: string[];
                /** @description Instead of root_id: selects at most 500 roots. */
                filter?: string;
                depth?: number;
                direction?: "out" | "in" | "both";
                /** @description Only these relationships; all by default. */
                relationship_types?: string[];
                /** @description Other types are neither shown nor passed through; derived types count. */
                node_types?: string[];
                max_nodes?: number;
                max_edges?: number;
                /** @description The maximum number of neighbors of one node. */
                fanout?: number;
                /** @description The graph as it was at this time (RFC 3339); without health. */
                at?: string;
                /** @description `health`: the roll-up of each node, with all that it takes health from. */
                include?: string[];
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
                /** @description From an entry of a frontier: its next neighbors. All other parameters must stay the same. */
                page_token?: string;
                format?: "json" | "graphml" | "dot";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Graph"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getNeedsGraph: {
        parameters: {
            query?: {
                /** @description Only this capability. */
                capability_key?: string;
                /** @description Only resources of this region; their providers may be elsewhere. */
                region_id?: string;
                /** @description Only these resources, at most 20. */
                root_id?: string[];
                /** @description Only unmet needs. */
                unsatisfied_only?: boolean;
                /** @description Degraded providers also meet requirements. */
                allow_degraded?: boolean;
                format?: "json" | "graphml" | "dot";
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NeedsGraph"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listCapabilityDefinitions: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                category?: string;
                status?: "active" | "deprecated";
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DefinitionList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCapabilityDefinition: {
        parameters: {
            query?: {
                version?: string;
            };
            header?: never;
            path: {
                capability_key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CapabilityDefinition"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listCapabilityProviders: {
        parameters: {
            query?: {
                /** @description 50 unless said; 0 is 50, and more than 500 is 500. */
                page_size?: number;
                /** @description From the previous reply. */
                page_token?: string;
                capability_key?: string;
                /** @description As npm writes it: ^1.0.0. */
                version_range?: string;
                region_id?: string;
                datacenter_id?: string;
                layer_id?: string;
                segment_id?: string;
                min_free?: number;
                /** @description available, degraded, stale, withdrawn; all but withdrawn unless said. */
                status?: string[];
                /** @description resource_id/requirement_key: providers that would meet that requirement. */
                requirement_of?: string;
                /** @description With requirement_of: degraded providers match too. */
                allow_degraded?: boolean;
                /** @description A resource to measure distance from. */
                near?: string;
                /** @description At most 3 of priority, free, distance; `-` = descending. */
                sort?: string;
                /** @description Adds providers that do not match, and why. */
                explain?: boolean;
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCapabilityGraph: {
        parameters: {
            query?: {
                /** @description Only this capability. */
                capability_key?: string;
                /** @description Only resources of this region; their providers may be elsewhere. */
                region_id?: string;
                /** @description Only these resources, at most 20. */
                root_id?: string[];
                /** @description Only unmet needs. */
                unsatisfied_only?: boolean;
                /** @description Degraded providers also meet requirements. */
                allow_degraded?: boolean;
                format?: "json" | "graphml" | "dot";
                /** @description A change_token: the answer includes that write (read your own writes). */
                min_change?: string;
                /** @description The maximum age of the answer. */
                max_lag_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CapabilityGraph"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    changeResources: {
        parameters: {
            query?: {
                /** @description Records facts about existing resources; permission catalog:record. */
                mode?: "record_only";
                /** @description Runs all checks and stores nothing. */
                validate_only?: boolean;
                reason?: string;
                /** @description Owns the fields that it sets; 409 field_owned if another manager set one to another value. Not user, operation or import. */
                manager?: string;
                /** @description Takes over fields of other managers; false refuses to, even if no manager is named. */
                force?: boolean;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRequest"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    importResources: {
        parameters: {
            query?: {
                /** @description Runs all checks, returns the differences and stores nothing. */
                validate_only?: boolean;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportRequest"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    startImport: {
        parameters: {
            query?: {
                reason?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportJobRequest"];
            };
        };
        responses: {
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportJob"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getImport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportJob"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listImportResults: {
        parameters: {
            query?: {
                page_token?: string;
            };
            header?: never;
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportResults"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    cancelImport: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportJob"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listCatalogAudit: {
        parameters: {
            query: {
                page_size: number;
                /** @description From the previous reply. */
                page_token?: string;
                /** @description Who: `user:<uuid>` or `svc:<name>`. */
                actor?: string;
                /** @description The action, as spelled in the rows. */
                action?: string;
                /** @description To what: `<kind>:<id>`, such as resource:eu1-web-01. */
                object?: string;
                /** @description Not before this time. */
                from?: string;
                /** @description Before this time. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listIntents: {
        parameters: {
            query?: {
                status?: ("open" | "previewed" | "executing" | "fulfilled" | "unfulfilled" | "expired")[];
                /** @description A user id, or `me`. */
                requester?: string;
                kind?: "change" | "action" | "runbook" | "graph";
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IntentList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createIntent: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IntentBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IntentView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getIntent: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                intent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IntentView"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getPlan: {
        parameters: {
            query?: {
                /** @description The last resource_id that is known. */
                diff_after?: string;
            };
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                plan_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanView"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getPlanGraph: {
        parameters: {
            query?: {
                collapse?: "auto" | "none" | "groups";
            };
            header?: never;
            path: {
                plan_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationGraph"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listProcedures: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcedureList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listPacks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PackList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listAgents: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCalendar: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CalendarView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listEvidenceKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EvidenceKeys"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listSchedules: {
        parameters: {
            query?: {
                status?: ("active" | "paused" | "ended")[];
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createSchedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listWaitingGates: {
        parameters: {
            query?: {
                status?: "waiting";
                for?: "me" | "all";
                risk?: ("low" | "medium" | "high" | "critical")[];
                environment?: string;
                sort?: "deadline";
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Inbox"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listWaiting: {
        parameters: {
            query?: {
                /** @description me: what the caller can act on. */
                for?: "me" | "all";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Waiting"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getOverview: {
        parameters: {
            query?: {
                /** @description Days back, including today, in UTC. */
                days?: 14 | 30 | 90;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listOperations: {
        parameters: {
            query?: {
                status?: components["schemas"]["OperationStatusSchema"][];
                status_group?: "open" | "ended" | "needs_attention";
                kind?: string;
                /** @description A user id, or `me`. */
                requester?: string;
                label?: string[];
                gate_for?: "me";
                /** @description Part of title or ticket. */
                q?: string;
                created_after?: string;
                created_before?: string;
                ended_after?: string;
                ended_before?: string;
                sort?: "-created_at" | "-updated_at" | "title";
                page_size?: number;
                page_token?: string;
                resource_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getOperation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getOperationGraph: {
        parameters: {
            query?: {
                collapse?: "auto" | "none" | "groups";
                revision?: number;
            };
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationGraph"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getTimeline: {
        parameters: {
            query?: {
                after_seq?: number;
                limit?: number;
                types?: string[];
                actor?: string;
                node_id?: string;
                wait_ms?: number;
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listNodes: {
        parameters: {
            query?: {
                state?: components["schemas"]["NodeStateSchema"][];
                group?: string;
                target_id?: string;
                failed_first?: boolean;
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getNode: {
        parameters: {
            query?: {
                /** @description Only this attempt. */
                attempt?: number;
            };
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Node"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listArtifacts: {
        parameters: {
            query?: {
                node_id?: string;
                kind?: string;
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArtifactList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    downloadArtifact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                artifact_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getEvidence: {
        parameters: {
            query?: {
                after_seq?: number;
                limit?: number;
                /** @description jsonl: the whole chain as a file of canonical JSON lines with a signed head (application/jsonl), for the requester of the operation and for auditors. */
                format?: "json" | "jsonl";
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Evidence"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listGates: {
        parameters: {
            query?: {
                status?: components["schemas"]["GateStatusSchema"][];
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GateList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getGate: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                gate_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gate"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listPatches: {
        parameters: {
            query?: {
                status?: ("awaiting_approval" | "approved" | "applied" | "rejected" | "not_applicable" | "expired" | "withdrawn")[];
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    proposePatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProposeBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getPatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that the caller already has. */
                "if-none-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                patch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchDetail"];
                };
            };
            /** @description Unchanged since the ETag that was sent. */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    etag: components["headers"]["etag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCommand: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                command_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CommandReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listResourceOperations: {
        parameters: {
            query?: {
                status?: components["schemas"]["OperationStatusSchema"][];
                status_group?: "open" | "ended" | "needs_attention";
                kind?: string;
                /** @description A user id, or `me`. */
                requester?: string;
                label?: string[];
                gate_for?: "me";
                /** @description Part of title or ticket. */
                q?: string;
                created_after?: string;
                created_before?: string;
                ended_after?: string;
                ended_before?: string;
                sort?: "-created_at" | "-updated_at" | "title";
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path: {
                resource_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    previewPlan: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                intent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanView"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    startPlan: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                plan_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createFreeze: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FreezeCreation"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FreezeItem"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    endFreeze: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                freeze_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FreezeEnd"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FreezeEnded"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    resumeSchedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleChange"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    runSchedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleChange"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    pauseSchedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleChange"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    endSchedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleChange"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    makeScheduleSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecretBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookSecretView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    takeWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description `standard`: names the delivery, which counts once; 1 to 200 visible ASCII characters. */
                "webhook-id"?: string;
                /** @description `standard`: when it was signed, in Unix seconds; at most 5 minutes off. */
                "webhook-timestamp"?: string;
                /** @description `standard`: `v1,` and the base64 HMAC-SHA-256 of `id.timestamp.body`; up to ten, space-separated. */
                "webhook-signature"?: string;
                /** @description `forge`: `sha256=` and the hexadecimal HMAC-SHA-256 of the body. */
                "x-hub-signature-256"?: string;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        /** @description Any bytes of any content type, a form too: they are signed. `if` of the schedule reads JSON. */
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookDeliveryView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getNodeLog: {
        parameters: {
            query?: {
                /** @description The latest when left out. */
                attempt?: number;
                /** @description The attempt of the node (default) or of its compensation. */
                role?: "run" | "undo";
                stream?: string;
                level?: string;
                after_seq?: number;
                before_seq?: number;
                tail?: boolean;
                limit?: number;
                /** @description Plain text, any case. */
                q?: string;
                /** @description With q: at most 200 matches before this line, the newest first. */
                match_before_seq?: number;
                wait_ms?: number;
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    downloadNodeLog: {
        parameters: {
            query?: {
                attempt?: number;
                role?: "run" | "undo";
            };
            header?: never;
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Done. */
            206: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            414: components["responses"]["UriTooLong"];
            416: components["responses"]["RangeNotSatisfiable"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    streamEvents: {
        parameters: {
            query: {
                /** @description Comma separated, at most 50: me, inbox, operations, operation:{id}, log:{operation_id}/{node_id}/{attempt}, resources, resource:{id}. */
                topics: string;
            };
            header?: {
                "last-event-id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Frames until the token or the session ends. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listOperationAudit: {
        parameters: {
            query: {
                page_size: number;
                /** @description From the previous reply. */
                page_token?: string;
                /** @description Who: `user:<uuid>` or `svc:<name>`. */
                actor?: string;
                /** @description The action, as spelled in the rows. */
                action?: string;
                /** @description To what: `<kind>:<id>`, such as resource:eu1-web-01. */
                object?: string;
                /** @description Not before this time. */
                from?: string;
                /** @description Before this time. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    takeWork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                pool: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkRequest"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Work"];
                };
            };
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    reportExecution: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExecutionResult"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecutionReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    fetchArtifact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sha256: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    uploadArtifact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sha256: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArtifactTaken"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    decodePayloads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Payloads"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Payloads"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getCaller: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getNotificationRules: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotifyRules"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    setNotificationRules: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RulesBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotifyRules"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    resetNotificationRules: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotifyRules"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listNotificationDeliveries: {
        parameters: {
            query?: {
                state?: ("queued" | "sent" | "dead" | "obsolete")[];
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
                page_size?: number;
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    listNotificationDestinations: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DestinationList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    addNotificationDestination: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DestinationBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DestinationView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getNotificationSecret: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: never;
            path: {
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecretView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    makeNotificationSecret: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecretBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DestinationView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    getPush: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PushView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            414: components["responses"]["UriTooLong"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    subscribePush: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PushBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DestinationView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    unsubscribePush: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    removeNotificationDestination: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, without a body. */
            204: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    confirmNotificationDestination: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConfirmBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DestinationView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    testNotificationDestination: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FreezeEnd"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DestinationView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    redeliverNotification: {
        parameters: {
            query?: {
                /** @description Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns. */
                group?: string;
            };
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FreezeEnd"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryView"] | components["schemas"]["DryRunReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    pauseOperation: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PauseBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    cancelOperation: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    resumeOperation: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResumeBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    retryNode: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                node_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetryBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createIntervention: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InterventionBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunReply"];
                };
            };
            /** @description Created. */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InterventionReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InterventionReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    sendSignal: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignalBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignalReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignalReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    approveGate: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                gate_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApproveBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GateReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GateReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    rejectGate: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                gate_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RejectBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GateReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GateReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    createBallot: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BallotBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BallotReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    approvePatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                patch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApprovePatchBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    rejectPatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description New and random for each new command; unchanged in a retry. */
                "idempotency-key"?: string;
                /** @description The ETag that was read, or a list of them: refused (412) if the version is none of these. */
                "if-match"?: string;
            };
            path: {
                /** @description The operation; also its workflow id. */
                operation_id: string;
                patch_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RejectPatchBody"];
            };
        };
        responses: {
            /** @description Done; the answer. */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchReply"] | components["schemas"]["DryRunReply"];
                };
            };
            /** @description Accepted, and not yet carried out. */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    location: components["headers"]["location"];
                    "idempotency-replayed": components["headers"]["idempotency-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PatchReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["Unavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    receiveNotification: {
        parameters: {
            query?: never;
            header: {
                /** @description Names the message, in each of its tries. */
                "webhook-id": string;
                /** @description When this try was made, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description `v1,` and the base64 HMAC-SHA-256 of `id.timestamp.body`. Two, with a space between, while a previous secret is valid. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"];
            };
        };
        responses: {
            /** @description The destination is disabled: it gets no further message. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The message was taken. The body is ignored. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The message is sent again later; `Retry-After` is respected. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
