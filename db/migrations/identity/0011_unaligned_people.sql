CREATE TABLE "identity"."scim_unaligned" (
	"user_id" uuid PRIMARY KEY NOT NULL
);
