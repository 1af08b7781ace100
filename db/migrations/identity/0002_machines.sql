CREATE TABLE "identity"."machine_assertions" (
	"credential_id" uuid NOT NULL,
	"jti" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "machine_assertions_credential_id_jti_pk" PRIMARY KEY("credential_id","jti")
);
--> statement-breakpoint
CREATE TABLE "identity"."machine_credentials" (
	"id" uuid PRIMARY KEY NOT NULL,
	"machine_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"secret_hash" text,
	"jwk" jsonb,
	"trust" jsonb,
	"permissions" text[] NOT NULL,
	"scope" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"created_by" text NOT NULL,
	"confirmed_by" text,
	"expires_at" timestamp with time zone NOT NULL,
	"revoked_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	"last_address" text,
	CONSTRAINT "machine_credentials_kind" CHECK ("identity"."machine_credentials"."kind" in ('key', 'jwk', 'trust')),
	CONSTRAINT "machine_credentials_one" CHECK (num_nonnulls("identity"."machine_credentials"."secret_hash", "identity"."machine_credentials"."jwk", "identity"."machine_credentials"."trust") = 1)
);
--> statement-breakpoint
CREATE TABLE "identity"."machine_owners" (
	"machine_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	CONSTRAINT "machine_owners_machine_id_user_id_pk" PRIMARY KEY("machine_id","user_id")
);
--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "kind" text DEFAULT 'person' NOT NULL;--> statement-breakpoint
ALTER TABLE "identity"."machine_credentials" ADD CONSTRAINT "machine_credentials_machine_id_users_id_fk" FOREIGN KEY ("machine_id") REFERENCES "identity"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity"."machine_owners" ADD CONSTRAINT "machine_owners_machine_id_users_id_fk" FOREIGN KEY ("machine_id") REFERENCES "identity"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity"."machine_owners" ADD CONSTRAINT "machine_owners_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "identity"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "machine_assertions_expires_at_index" ON "identity"."machine_assertions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "machine_credentials_machine_id_id_index" ON "identity"."machine_credentials" USING btree ("machine_id","id");--> statement-breakpoint
ALTER TABLE "identity"."users" ADD CONSTRAINT "users_kind" CHECK ("identity"."users"."kind" in ('person', 'machine'));